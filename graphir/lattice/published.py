"""The published lattices by name, lawful or not."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.lattice.order import Lattice

_JEP = "JEP 9407"
_JAX = "JAX documentation, Type promotion semantics"

# As the JEP does, each design adds edges to an earlier one. `a < b, c < d` says that b and c lie
# directly above a, and d above both. Names count bits; those of JAX's documentation, which count
# bytes, are translated.
_CATEGORIES = "u8 < u16 < u32 < u64; i8 < i16 < i32 < i64; f16 < f32 < f64; c64 < c128"
_SCALARS = f"i* < u8, i8; f* < c*, f16; c* < c64; {_CATEGORIES}"
_COMPLEX = f"{_SCALARS}; f32 < c64; f64 < c128"
_UNSIGNED = f"{_COMPLEX}; u8 < i16; u16 < i32; u32 < i64"
_OPTION0 = f"{_UNSIGNED}; i* < f*"
_OPTION1 = f"{_OPTION0}; i8 < f16; i16 < f32; i32 < f64"
_OPTION3 = f"{_UNSIGNED}; i64 < f*"
_BFLOAT16 = f"{_OPTION3}; f* < bf16 < f32"
_FINAL = f"{_BFLOAT16}; u64 < f*"

PUBLISHED = {
    "jep_python": "int < float < complex",
    "jep_not_lattice_left": "A < B, C",
    "jep_not_lattice_right": "A, B < C, D",
    "jep_in_category": _CATEGORIES,
    "jep_scalar_types_signed_int": "i8* < i16* < i32* < i64* < i8 < i16 < i32 < i64",
    "jep_in_category_with_scalars": f"{_CATEGORIES}; u* < u8; i* < i8; f* < f16; c* < c64",
    "jep_combining": f"{_SCALARS}; i* < f*",
    "jep_float_complex": f"{_COMPLEX}; i* < f*",
    "jep_signed_unsigned": _OPTION0,
    "jep_int_float_numpy_like": f"{_OPTION1}; u8 < f16; u16 < f32; u32 < f64",
    "jep_option0": _OPTION0,  # the JEP stops there, with the partial lattice it has
    "jep_option1": _OPTION1,
    "jep_option2": f"{_OPTION0}; i16 < f16; i32 < f32; i64 < f64",
    "jep_option3": _OPTION3,
    "jep_option3_bfloat16": _BFLOAT16,
    "jep_jax_final": _FINAL,
    "jax_doc": f"bool < i*; {_FINAL}",
}


def lattices() -> tuple[str, ...]:
    """The names of the published lattices."""
    return tuple(PUBLISHED)


def element(name: str) -> DType | str:
    """The dtype of a name, alias or short name, which counts bits; of any other name, itself."""
    return _dtypes().get(name, name)


@cache
def _dtypes() -> dict[str, DType]:
    shorts = {dtype.short: dtype for dtype in DType}
    return shorts | {name: dtype for dtype in DType for name in (str(dtype), *dtype.aliases)}


def is_dtype(node: Any) -> bool:
    """Whether a node is a dtype, or names one as DType(...) takes it."""
    try:
        return bool(DType(node))
    except GraphError:
        return False


def of_dtypes(lattice: Lattice[Any] | None) -> Lattice[DType] | None:
    """The lattice with names of dtypes read as dtypes."""
    if lattice is None or all(isinstance(node, DType) for node in lattice):
        return lattice
    edges = {DType(low): [DType(node) for node in above] for low, above in lattice.edges.items()}
    return Lattice(lattice.name, edges, lattice.source)


@cache
def published(name: str) -> Lattice[Any]:
    """The published lattice of that name."""
    source = _JAX if name == "jax_doc" else _JEP
    return Lattice(name, _edges(PUBLISHED[name]), source)


def _edges(text: str) -> dict[Any, list[Any]]:
    """Edges from chains parted by `;`, in which every step may be several names."""
    edges: dict[Any, list[Any]] = {}
    for chain in text.split(";"):
        steps = [[element(name.strip()) for name in step.split(",")] for step in chain.split("<")]
        for lows, highs in pairwise(steps):
            for low in lows:
                edges.setdefault(low, []).extend(highs)
    return edges
