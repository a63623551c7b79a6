"""How far the results of an engine may be from those of graphir: what each promises, added.

Ops that are not here have the same bits. The unit is that of the last place in the dtype that is
computed in; a narrower result is rounded once more, by each side, so that it may be the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Symbol, ops
from graphir.semantics.evaluation import machine, settings_of
from graphir.semantics.kernels import KERNELS
from tests.support.accuracy import BOUNDS
from tests.support.op_rows import ROWS, Bound

Array = np.ndarray[Any, Any]


XLA: dict[str, Bound] = {
    name: ROWS[name].xla or Bound(bound.float32, bound.float64) for name, bound in BOUNDS.items()
}
"""What XLA is from the truth, by `python -m tests.support.accuracy`, rounded up."""
EXACT: dict[str, Bound] = {name: Bound(0, 0) for name in BOUNDS}
"""What runs graphir's own functions."""
ONNX: dict[str, Bound] = {
    **{name: Bound(3, 3) for name in BOUNDS},
    "gelu": Bound(3, 3, lambda x: abs(x)),  # x * (1 + erf), whose 1 takes the last places
}
"""What onnxruntime is from the truth, as tests/runtime/targets/test_target_onnx.py finds."""
OF_ENGINES: dict[str, Mapping[str, Bound]] = {
    "python": EXACT,
    "jax": XLA,
    "stablehlo": XLA,
    "onnx": ONNX,
    "dask": EXACT,
}
COMPLEX = 32
"""Units that complex functions and products may be off, for which nothing promises less."""
LONG = 16
"""Units that sums of a few terms may be off, and what is made of sums."""


class Asked(NamedTuple):
    """An op on inputs, and what comes of it: by `interpret`, and by an engine."""

    engine: str
    symbol: Symbol
    inputs: tuple[Array, ...]
    ours: Array
    theirs: Array

    @property
    def op(self) -> str:
        return self.symbol.op.name

    @property
    def wide(self) -> DType:
        """The dtype that is computed in; control flow moves its arrays alone."""
        if self.symbol.op is ops.control.part:
            return self.symbol.dtype
        return machine(self.symbol.args[0].dtype) if self.symbol.args else self.symbol.dtype

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes as kernels take them."""
        return settings_of(self.symbol.op, self.symbol.dtype, self.symbol.attrs, {}, "even")


@np.errstate(all="ignore")
def differs(asked: Asked) -> Array:
    """Where results differ by more than is allowed."""
    return ~same_bits(asked.ours, asked.theirs) & ~(distance(asked) <= allowed(asked))


def same_bits(one: Array, other: Array) -> Array:
    """Where bits are the same, any NaN equal to any NaN."""
    if one.dtype.kind == "c":
        return same_bits(one.real, other.real) & same_bits(one.imag, other.imag)
    bits = np.ascontiguousarray(one).view(f"u{one.itemsize}").reshape(one.shape)
    equal = bits == np.ascontiguousarray(other).view(f"u{one.itemsize}").reshape(one.shape)
    return equal | (np.not_equal(one, one) & np.not_equal(other, other))


def distance(asked: Asked) -> Array:
    """The absolute difference, of parts of complex numbers that are not the same; NaN of inf."""
    if asked.ours.dtype.kind != "c":
        return abs(wide(asked.ours) - wide(asked.theirs))
    pairs = [(getattr(asked.ours, x), getattr(asked.theirs, x)) for x in ("real", "imag")]
    return np.hypot(*(np.where(same_bits(x, y), 0.0, abs(wide(x) - wide(y))) for x, y in pairs))


def magnitude(x: Array) -> Array:
    """The size of complex numbers, that of a part where the other is not finite."""
    parts = wide(x).real, wide(x).imag
    return np.hypot(*(np.where(np.isfinite(one), one, 0.0) for one in parts))


def wide(x: Array) -> Array:
    """Numbers as float64 or complex128."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def allowed(asked: Asked) -> Any:
    """The greatest absolute difference that the bounds of both sides allow."""
    if asked.wide.format is None and not asked.wide.is_complex:
        return 0.0
    found = _in_wide(asked)
    if found is None or asked.symbol.dtype is asked.wide.part or asked.symbol.dtype is asked.wide:
        return 0.0 if found is None else found
    return found + _spacing(abs(wide(asked.ours)), asked.symbol.dtype)


def _in_wide(asked: Asked) -> Any:
    """The difference that is allowed before a result is rounded to a narrow dtype, if any is."""
    part = asked.wide.part
    if asked.op in SIZES and (asked.wide.is_complex or asked.op not in EXACT_IF_REAL):
        units = COMPLEX if asked.wide.is_complex else LONG
        return units * 2.0**-part.format.mantissa * SIZES[asked.op](asked)
    if asked.op not in BOUNDS:
        return None
    if asked.wide.is_complex:
        return COMPLEX * 2.0**-part.format.mantissa * np.maximum(magnitude(asked.ours), 1)
    bounds = BOUNDS[asked.op], OF_ENGINES[asked.engine][asked.op]
    return sum(_absolute(bound, asked) for bound in bounds)


def _absolute(bound: Bound, asked: Asked) -> Any:
    """A bound in units of the last place as a difference."""
    operands = [x.astype(asked.wide.storage) for x in asked.inputs]
    size = np.maximum(abs(wide(asked.ours)), wide(np.asarray(bound.near(*operands))))
    return getattr(bound, str(asked.wide)) * _spacing(size, asked.wide)


def _spacing(size: Array, dtype: DType) -> Array:
    """The unit in the last place of numbers."""
    format_ = dtype.format
    least = np.maximum(size, float(format_.least) * 2.0**format_.mantissa)
    return 2.0 ** (np.frexp(least)[1] - 1 - format_.mantissa)


# -- sizes of results: what is lost is counted in units of them


def _terms(asked: Asked) -> Array:
    """The op on the magnitudes of its operands: what its terms come to where none cancel."""
    given = [abs(wide(x)) for x in asked.inputs]
    return np.asarray(KERNELS[asked.op](*given, **asked.attrs))


def _greatest(asked: Asked) -> Any:
    sizes = abs(wide(asked.inputs[0]))
    return np.max(sizes[np.isfinite(sizes)], initial=0.0)


def _normalized(asked: Asked) -> Any:
    """The greatest of x / std * scale + shift."""
    x, scale, shift = map(wide, asked.inputs)
    deviation = np.sqrt(x.var(-1, keepdims=True) + asked.attrs["epsilon"])
    return abs(x).max(-1, keepdims=True) / deviation * abs(scale).max() + abs(shift).max()


SIZES: dict[str, Callable[[Asked], Any]] = {
    **dict.fromkeys(("sum", "mean", "prod", "cumulative_sum", "cumulative_prod"), _terms),
    **dict.fromkeys(("matmul", "tensordot", "outer", "multiply"), _terms),
    "square": lambda asked: abs(wide(asked.inputs[0])) ** 2,
    "abs": lambda asked: abs(wide(asked.ours)),
    "sign": lambda asked: 1.0,
    "var": lambda asked: _greatest(asked) ** 2,
    "std": lambda asked: _greatest(asked) ** 2 / wide(asked.ours),
    "softmax": lambda asked: (1 + 2 * _greatest(asked)) * wide(asked.ours),
    "logsoftmax": lambda asked: 1 + _greatest(asked),
    "layer_norm": _normalized,
}
EXACT_IF_REAL = ("multiply", "outer", "square", "abs", "sign")
