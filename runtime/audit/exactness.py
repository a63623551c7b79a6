"""Proofs that a step has the same values in both runs of an audit, so that one run is enough.

If the operands of a step are equal in both runs, its results are equal unless the step rounds or
wraps: the dtypes, the op and the ranges of integers tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from graphir.ops import dtype_rules as signatures
from graphir.passes.rewriter import is_conversion
from graphir.public import DType, Op, Symbol, ops

if TYPE_CHECKING:
    from graphir.runtime.audit.blocked_run import BlockedRun

EXACT_OPS = {
    *(ops.where, ops.maximum, ops.minimum, ops.negative, ops.positive, ops.abs, ops.sign, ops.relu),
    *(ops.floor, ops.ceil, ops.trunc, ops.round, ops.copysign, ops.clip, ops.max, ops.min),
    *(ops.real, ops.imag, ops.conj, ops.as_complex, ops.sort, ops.heaviside),
}
"""Ops that compute without rounding, but for the size and the sign of a complex number."""


def is_exact(symbol: Symbol) -> bool:
    """Whether a step computes without rounding."""
    if symbol.op not in EXACT_OPS:
        return False
    return symbol.op not in (ops.abs, ops.sign) or not symbol.args[0].dtype.is_complex


_KINDS = ("elementwise", "reduction", "contraction", "rowwise", "movement")
_WRAPPING = {ops.negative, ops.abs}
_BITS = {signatures.BITWISE, signatures.SHIFT}
_SUMS = {ops.sum, ops.numpy_sum, ops.cumulative_sum}


def is_wide(dtype: DType) -> bool:
    """Whether values of a dtype are those of wide arithmetic."""
    return dtype is DType.float64 or dtype is DType.complex128


def keeps_equal(symbol: Symbol, run: BlockedRun) -> bool:
    """Whether a step on operands that are equal in both runs surely has equal results.

    `run` is the reference run, and has the values of the symbol and its operands.
    """
    op = symbol.op
    converts = is_conversion(symbol)
    if not converts and op.kind not in _KINDS:
        return False
    target = run.graph.storage_dtype(symbol)
    sources = [run.graph.storage_dtype(x) for x in symbol.args]
    if converts:
        is_lossless = sources[0].exact_in(target) or target.family == "bool"
        return is_lossless or _fits(symbol.args[0], target, run)
    if op.kind == "movement":
        return "value" not in symbol.attrs  # which each run rounds to its own dtype
    if is_wide(target):
        return all(is_wide(x) or x.family == "bool" for x in sources)
    if target.family == "bool":
        return op.decomposition is None
    if target.is_integer:
        return _is_exact_integer(symbol, target, sources, run)
    return is_exact(symbol)


def _is_exact_integer(symbol: Symbol, target: DType, sources: list[DType], run: BlockedRun) -> bool:
    op = symbol.op
    if op.signature is signatures.POSITION or (op in EXACT_OPS and op not in _WRAPPING):
        return True
    if op.signature in _BITS:
        return op is not ops.left_shift
    if not all(x.is_integer for x in sources):
        return False
    args = symbol.args
    range_ = result_range(
        symbol.op, lambda i: run.range(args[i]), lambda i: run.cached_value(args[i]).size
    )
    return is_inside(range_, target)


Range: TypeAlias = tuple[int, int]
"""The least and the greatest of some integers."""


def range_of(values: NDArray[Any]) -> Range:
    """Return the range of integers; that of no elements is (0, 0)."""
    return (int(values.min()), int(values.max())) if values.size else (0, 0)


def result_range(
    op: Op, range_at: Callable[[int], Range], size_at: Callable[[int], int]
) -> Range | None:
    """Return a range that has the exact results of an op on integers; None of other ops.

    The arguments return the range and the size of the operand at a position.
    """
    if op in _SUMS:
        (least, most), count = range_at(0), size_at(0)
        return min(least * count, 0), max(most * count, 0)
    if op is ops.index_add:
        (low, high), (least, most), count = range_at(0), range_at(1), size_at(2)
        return low + min(least * count, 0), high + max(most * count, 0)
    if op not in _BINARY and op not in _UNARY:
        return None
    a, b = range_at(0)
    c, d = range_at(1) if op in _BINARY else (a, b)
    if op in (ops.multiply, ops.square):
        products = a * c, a * d, b * c, b * d
        return min(products), max(products)
    if op is ops.remainder:
        return min(c, 0), max(d, 0)
    if op in (ops.add, ops.subtract):
        return (a + c, b + d) if op is ops.add else (a - d, b - c)
    most = max(abs(a), abs(b))  # negative, abs and floor_divide
    is_positive = op is ops.abs or (op is ops.floor_divide and min(a, c) >= 0)
    return 0 if is_positive else -most, most


_UNARY = {ops.square, ops.negative, ops.abs}
_BINARY = {ops.multiply, ops.floor_divide, ops.remainder, ops.add, ops.subtract}


def _fits(symbol: Symbol, target: DType, run: BlockedRun) -> bool:
    """Whether a cast of integers surely keeps them."""
    if not run.graph.storage_dtype(symbol).is_integer:
        return False
    if target in _FLOATS:
        return is_inside(run.range(symbol), 2**target.precision)
    return target.is_integer and is_inside(run.range(symbol), target)


_FLOATS = (DType.float16, DType.bfloat16, DType.float32, DType.float64)


def is_inside(range_: Range | None, target: DType | int) -> bool:
    """Whether a range is inside of that of an integer dtype, or within +- an integer."""
    if range_ is None:
        return False
    if isinstance(target, int):
        return max(map(abs, range_)) <= target
    return int(target.min) <= range_[0] and range_[1] <= int(target.max)
