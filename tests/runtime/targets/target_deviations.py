"""What engines do otherwise than `interpret`, beyond the bounds of their functions, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphir import Graph, ops
from tests.peers import COMPARISONS
from tests.runtime.targets.target_bounds import Array, Asked, wide
from tests.support.accuracy import BOUNDS

ANY = (*ops.CATALOGUE,)
XLA = "jax stablehlo"
NAN, INF = float("nan"), float("inf")


class Deviation(NamedTuple):
    """What engines do otherwise, its source, of which engines and ops, and where.

    `where` gives the elements of a result that may differ. Then an example: an op, a dtype and
    operands, and what comes of them, here and there.
    """

    what: str
    source: str
    engines: str
    ops: tuple[str, ...]
    where: Callable[[Asked], Any]
    op: str
    dtype: str
    inputs: tuple[Any, ...]
    ours: Any
    theirs: Any
    attrs: Mapping[str, Any] = MappingProxyType({})

    def graph(self) -> Graph:
        """The graph of the example."""
        graph = Graph("example", rules="explicit")
        inputs = [graph.input(self.dtype, np.shape(x)) for x in self.inputs]
        graph.output(ops.CATALOGUE[self.op](*inputs, **self.attrs))
        return graph

    def explains(self, asked: Asked) -> Any:
        """Where this is why results differ."""
        mine = asked.op in self.ops and asked.engine in self.engines.split()
        return self.where(asked) if mine else False


def explains(asked: Asked) -> Array:
    """Where some row is why results differ."""
    found = np.zeros(asked.ours.shape, np.bool_)
    for row in DEVIATIONS:
        found |= row.explains(asked)
    return found


# -- conditions

PLACED = ("elementwise", "cast")


def over(asked: Asked, test: Callable[[Array], Array]) -> Any:
    """Where an operand passes a test: of elementwise ops at its place, of others anywhere."""
    found: Any = False
    for x in asked.inputs:
        found = found | (test(x) if asked.symbol.op.kind in PLACED else test(x).any())
    return found


def parts(x: Array) -> Array:
    """Numbers as float64, the two parts of complex ones on a last axis."""
    both = np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x[..., None]
    return both.astype(np.float64)


def tiny(x: Array, times: float = 1.0) -> Array:
    """Where numbers are subnormal in float32, or in float64 if they are of that."""
    is_wide = x.dtype in (np.float64, np.complex128)
    least = np.finfo(np.float64 if is_wide else np.float32).smallest_normal
    size = np.abs(parts(x))
    return ((size > 0) & (size < least * times)).any(-1)


def flushed(asked: Asked) -> Any:
    """Where an operand or the result is subnormal, or all but."""
    return over(asked, tiny) | tiny(asked.ours, 4) | tiny(asked.theirs, 4)


def special(asked: Asked) -> Any:
    """Where complex numbers are not finite, or their squares or powers of e are not."""
    if not asked.wide.is_complex:
        return False
    # A ninth of the digits: products of a few and powers of e are finite below.
    large = 40.0
    return over(asked, lambda x: ~(np.abs(parts(x)) < large).all(-1))


def signed_nan(asked: Asked) -> Any:
    """Where an operand is NaN."""
    return over(asked, lambda x: np.isnan(x))


def overflowing(asked: Asked) -> Any:
    """Where a product of some of the operands is infinite, or none."""
    with np.errstate(all="ignore"):
        return ~np.isfinite(wide(asked.theirs))


DEVIATIONS = [
    Deviation(
        "subnormal operands and results of arithmetic are zero",
        "jax-ml/jax#16200 and #26658",
        XLA,
        ANY,
        flushed,
        "relu",
        "float32",
        ([2.0**-127],),
        [2.0**-127],
        [0.0],
    ),
    Deviation(
        "NaN of the formats that have one, where -0.0 would be, has no sign",
        "arXiv:2206.02915; ml_dtypes and XLA convert it to float32 as they like",
        XLA,
        ("signbit", "copysign"),
        signed_nan,
        "signbit",
        "float8_e5m2fnuz",
        ([NAN],),
        [True],
        [False],
    ),
    Deviation(
        "functions of complex numbers are other formulas: of infinities, NaN and great numbers",
        "ISO C, annex G, leaves signs and NaN open; StableHLO says nothing",
        XLA,
        (*BOUNDS, "sign", "multiply", "square", "abs", "prod", "cumulative_prod", "round"),
        special,
        "sin",
        "complex64",
        ([complex(INF, 0)],),
        [complex(NAN, 0)],
        [complex(NAN, NAN)],
    ),
    Deviation(
        "1 / 0 of complex numbers has other infinities and NaN",
        "ISO C, annex G; XLA on CPU divides by formula",
        XLA,
        ("divide", "reciprocal", "rsqrt"),
        lambda asked: asked.wide.is_complex and over(asked, lambda x: x == 0),
        "reciprocal",
        "complex64",
        ([complex(-0.0, 0)],),
        [complex(NAN, NAN)],
        [complex(-INF, NAN)],
    ),
    Deviation(
        "complex numbers compare by real parts, then by imaginary ones, whatever is NaN",
        "jax/_src/numpy/ufuncs.py, _complex_comparison; mlir.py, _minmax_hlo",
        "jax",
        (*COMPARISONS, "maximum", "minimum", "max", "min", "clip", "relu", "sort", "argsort"),
        lambda asked: asked.wide.is_complex and over(asked, np.isnan),
        "maximum",
        "complex64",
        ([complex(NAN, 0)], [1 + 2j]),
        [complex(NAN, 0)],
        [1 + 2j],
    ),
    Deviation(
        "products of complex infinities, in pieces, have NaN in other parts",
        "ISO C, annex G; NumPy's loops over pieces of arrays",
        "dask",
        ("prod", "matmul", "tensordot"),
        special,
        "prod",
        "complex64",
        ([[127.6, 2.5 + 0.33j], [65520 + 65504j, complex(-2.75, INF)]],),
        complex(-INF, INF),
        complex(NAN, NAN),
    ),
    Deviation(
        "cosines and sines lose what is left of multiples of pi/2",
        "onnxruntime: MLAS reduces arguments with a constant of 64 bits",
        "onnx",
        ("sin", "cos"),
        lambda asked: abs(wide(asked.ours)) < 0.1,
        "cos",
        "float64",
        ([-1.5638169247136842] * 8,),
        [0.006979345417849304] * 8,
        [0.006979345417849244] * 8,
    ),
    Deviation(
        "erf of float64 is that of float32",
        "onnx/reference/ops/op_erf.py; onnxruntime has no kernel",
        "onnx",
        ("erf", "gelu"),
        lambda asked: asked.ours.dtype == np.float64,
        "erf",
        "float64",
        ([1.8289344062575623],),
        [0.990304491050266],
        [0.9903044700622559],
    ),
    Deviation(
        "complex numbers are repeated by a product with ones, of which infinities become NaN",
        "onnx/reference/ops/op_expand.py",
        "onnx",
        ("broadcast_to", "slice_update"),
        lambda asked: ~np.isfinite(asked.inputs[-1]).all(),
        "broadcast_to",
        "complex64",
        ([complex(INF, 1)],),
        [complex(INF, 1)] * 2,
        [complex(INF, NAN)] * 2,
        {"shape": 2},
    ),
    Deviation(
        "products are multiplied in another order, and may overflow on the way",
        "XLA on CPU; onnxruntime",
        f"{XLA} onnx",
        ("prod",),
        overflowing,
        "prod",
        "float32",
        ([[-0.0, 65520.0], [-3.5, 3e38]],),
        0.0,
        NAN,
    ),
]
