"""Proofs that a step has the same values in both runs of an audit, so that one run is enough.

If the operands of a step are equal in both runs, its results are equal unless the step rounds or
wraps: the dtypes, the op and the ranges of integers tell.
"""

from __future__ import annotations

from graphir import DType, Op, Symbol, ops
from graphir.ops import dtype_rules as signatures
from graphir.passes.rewriter import is_conversion
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
    return _is_inside(result_range(symbol, run), target)


def result_range(symbol: Symbol, run: BlockedRun) -> tuple[int, int] | None:
    """Return a range that has the exact results of an op on integers; None of other ops."""
    ranges = [run.range(x) for x in symbol.args]
    if symbol.op in _SUMS:
        (least, most), count = ranges[0], run.cached_value(symbol.args[0]).size
        return min(least * count, 0), max(most * count, 0)
    if symbol.op is ops.index_add:
        (low, high), (least, most), _ = ranges
        count = run.cached_value(symbol.args[2]).size
        return low + min(least * count, 0), high + max(most * count, 0)
    return _of_ranges(symbol.op, ranges)


def _of_ranges(op: Op, ranges: list[tuple[int, int]]) -> tuple[int, int] | None:
    (a, b), (c, d) = ranges[0], ranges[-1]
    if op in (ops.multiply, ops.square):
        products = a * c, a * d, b * c, b * d
        return min(products), max(products)
    if op in (ops.negative, ops.abs, ops.floor_divide):
        most = max(abs(a), abs(b))
        is_positive = op is ops.abs or (op is ops.floor_divide and min(a, c) >= 0)
        return 0 if is_positive else -most, most
    if op is ops.remainder:
        return min(c, 0), max(d, 0)
    if op in (ops.add, ops.subtract):
        return (a + c, b + d) if op is ops.add else (a - d, b - c)
    return None


def _fits(symbol: Symbol, target: DType, run: BlockedRun) -> bool:
    """Whether a cast of integers surely keeps them."""
    if not run.graph.storage_dtype(symbol).is_integer:
        return False
    if target in _FLOATS:
        return _is_inside(run.range(symbol), 2**target.precision)
    return target.is_integer and _is_inside(run.range(symbol), target)


_FLOATS = (DType.float16, DType.bfloat16, DType.float32, DType.float64)


def _is_inside(range_: tuple[int, int] | None, target: DType | int) -> bool:
    """Whether a range is inside of that of an integer dtype, or within +- an integer."""
    if range_ is None:
        return False
    if isinstance(target, int):
        return max(map(abs, range_)) <= target
    return int(target.min) <= range_[0] and range_[1] <= int(target.max)
