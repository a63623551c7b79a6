"""The published lattices by name, lawful or not."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType, until_declared

_JEP = "JEP 9407"
_JAX = "JAX documentation, Type promotion semantics"

# As in the JEP, each design adds edges to an earlier design. The notation is that of
# `lattice_of_text`. Names count bits. JAX's documentation uses the same names to count bytes; here
# they are translated.
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
    "jep_option0": _OPTION0,  # the JEP leaves this lattice partial
    "jep_option1": _OPTION1,
    "jep_option2": f"{_OPTION0}; i16 < f16; i32 < f32; i64 < f64",
    "jep_option3": _OPTION3,
    "jep_option3_bfloat16": _BFLOAT16,
    "jep_jax_final": _FINAL,
    "jax_doc": f"bool < i*; {_FINAL}",
}


def lattices() -> tuple[str, ...]:
    """Return the names of the published lattices."""
    return tuple(PUBLISHED)


def element(name: str) -> DType | str:
    """Return the dtype with a name, alias or short name; any other name unchanged.

    Short names count bits, so that `i8` is int8.
    """
    return _dtypes().get(name, name)


@until_declared
def _dtypes() -> dict[str, DType]:
    shorts = {dtype.short: dtype for dtype in DType}
    return shorts | {name: dtype for dtype in DType for name in (str(dtype), *dtype.aliases)}


def of_dtypes(lattice: Lattice[Any] | None) -> Lattice[DType] | None:
    """Return the lattice with every node converted to a DType; None for None.

    Raises GraphError for a node that names no dtype.
    """
    if lattice is None or all(isinstance(node, DType) for node in lattice):
        return lattice
    edges = {DType(low): [DType(node) for node in above] for low, above in lattice.edges.items()}
    return Lattice(lattice.name, edges, lattice.source)


@cache
def published(name: str) -> Lattice[Any]:
    """Return the published lattice of a name."""
    return lattice_of_text(name, PUBLISHED[name], _JAX if name == "jax_doc" else _JEP)


def lattice_of_text(name: str, text: str, source: str = "") -> Lattice[Any]:
    """Return a lattice of chains separated by `;`, in which every step may list several names.

    `a < b, c < d` says that b and c lie directly above a, and d directly above both.
    """
    edges: dict[Any, list[Any]] = {}
    for chain in text.split(";"):
        steps = [[element(name.strip()) for name in step.split(",")] for step in chain.split("<")]
        for low in steps[0]:
            edges.setdefault(low, [])
        for lows, highs in pairwise(steps):
            for low in lows:
                edges.setdefault(low, []).extend(highs)
    return Lattice(name, edges, source)
