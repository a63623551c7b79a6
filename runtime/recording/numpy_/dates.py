"""Datetimes and timedeltas as integers, which is what NumPy computes with: counts of a unit.

The symbol of an array of datetime64 or timedelta64 is that of its int64 counts, and the array has
the unit. NumPy converts counts to the finest unit of the operands of a ufunc, by a product that may
wrap or by a floor division; the recording emits these ops. NaT, the least int64, is no integer:
each result is compared with the same calculation on integers, and one that differs has no op.
Years and months have no fixed length: their conversions from and to other units are exact steps
outside of the graph, which an audit repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from graphir.ir.literals import is_literal, native
from graphir.numpy_api.ufuncs import OPS
from graphir.public import DType, ExecutionError, Symbol, ops
from graphir.runtime.audit.library_calls import CallResult, LibraryCall
from graphir.runtime.recording.values import Array, Result, UnrecordedError, plain
from graphir.semantics.library_calls import leaves

if TYPE_CHECKING:
    from graphir.runtime.recording.recorder import Recorder

_SECOND = 10**18
_NAMES = "as", "fs", "ps", "ns", "us", "ms", "s"
_LENGTHS = {name: 1000**place for place, name in enumerate(_NAMES)} | {
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
    "D": 86400 * _SECOND,
    "W": 604800 * _SECOND,
    "M": 1,
    "Y": 12,
}
"""The attoseconds of each unit of fixed length, and the months of the others."""
_MOVING = frozenset(
    (ops.broadcast_to, ops.concat, ops.constant, ops.flip, ops.full, ops.gather, ops.index_update,
     ops.input, ops.item, ops.permute, ops.range, ops.reshape, ops.roll, ops.slice,
     ops.slice_update, ops.stack, ops.take_along, ops.where)
)  # fmt: skip
"""Ops that leave each element as it is, NaT too."""
_QUOTIENTS = np.divide, np.floor_divide


_WRAPPING = frozenset((np.negative, np.absolute, np.multiply))


def is_dated(dtype: np.dtype[Any]) -> bool:
    """Whether a NumPy dtype is datetime64 or timedelta64."""
    return dtype.kind in "mM"


def _in_months(dtype: np.dtype[Any]) -> bool:
    """Whether the unit of a dtype is months or years, which have no fixed length."""
    return np.datetime_data(dtype)[0] in ("Y", "M")


def _length(dtype: np.dtype[Any]) -> int | None:
    """Return the attoseconds, or months, that a count of a dtype stands for.

    The answer is None for a dtype that takes the unit of its partner.
    """
    unit, count = np.datetime_data(dtype)
    return _LENGTHS[unit] * count if unit in _LENGTHS else None


def integers(value: ArrayLike) -> Array:
    """Return an array in native byte order, with the counts in place of datetimes or timedeltas."""
    array: Array = native(np.asarray(value))
    return array.view(np.int64) if is_dated(array.dtype) else array


def rescaled(recorder: Recorder, x: Symbol, values: Array, to: np.dtype[Any]) -> Symbol:
    """Return the symbol `x` of `values` in another unit, to which NumPy wraps or floors."""
    if _in_months(values.dtype) != _in_months(to) and None not in map(_length, (values.dtype, to)):
        return _by_calendar(recorder, x, values, to)
    before, after = _length(values.dtype), _length(to)
    if before is None or after is None:
        before = after = 1
    shared, counts = gcd(before, after), integers(values)
    with np.errstate(all="ignore"):
        for ufunc, op, factor in (
            (np.multiply, ops.multiply, before // shared),
            (np.floor_divide, ops.floor_divide, after // shared),
        ):
            if factor >= 2**63:
                raise UnrecordedError(f"the ratio of {values.dtype} and {to} is beyond int64")
            if factor != 1:
                counts = np.asarray(ufunc(counts, np.int64(factor)))
                x = recorder.emit(op, (x, recorder.constant(np.int64(factor))))
    if not _equal(counts, integers(values.astype(to))):
        raise UnrecordedError(f"its {values.dtype} has NaT")
    return x


class _Calendar(LibraryCall):
    """The conversion of counts of one unit to another, of which one is months or years."""

    def __init__(self, source: np.dtype[Any], to: np.dtype[Any]) -> None:
        self._source, self._to = source, to

    @property
    def keeps_integers(self) -> bool:
        """Whether no count wraps: `widened` refuses those that may."""
        return True

    def widened(self, operands: Sequence[Array]) -> Sequence[Any]:
        """Return the counts of the other unit."""
        (counts,) = operands
        is_long = _in_months(self._source) and np.abs(counts).max(initial=0) >= 2**31
        if counts.dtype != np.int64 or is_long:
            raise ExecutionError("its dates may be beyond int64")
        return [integers(counts.view(self._source).astype(self._to))]


def _by_calendar(recorder: Recorder, x: Symbol, values: Array, to: np.dtype[Any]) -> Symbol:
    """Return the symbol `x` of `values` in months in place of a unit of fixed length, or back.

    No op has a calendar: the result is an input, of a step with a call.
    """
    unit = to if _in_months(to) or (_length(to) or 0) > _SECOND else np.dtype(f"{to.kind}8[s]")
    if not _in_months(to) and np.abs(integers(values)).max(initial=0) >= 2**31:
        raise UnrecordedError(f"{values.dtype} may wrap in {to}")
    dates: Array = values.astype(unit)
    result = recorder.input(dates)
    reason = f"converts {values.dtype} to {to} by the calendar"
    call = CallResult(_Calendar(values.dtype, unit), 0)
    recorder.step("a date", reason, (result,), (x,), result=call)
    return rescaled(recorder, result, dates, to)


def converted(recorder: Recorder, x: Symbol, values: Array, real: Array) -> Symbol:
    """Return the symbol of `values`, whose symbol is `x`, cast to the dtype of `real`."""
    counts = integers(values)
    if is_dated(values.dtype) and is_dated(real.dtype):
        result = rescaled(recorder, x, values, real.dtype)
        same = _equal(integers(values.astype(real.dtype)), integers(real))
    else:
        result = recorder.converted(x, counts, recorder.dtype(real.dtype), real=integers(real))
        with np.errstate(all="ignore"):
            same = _equal(counts.astype(integers(real).dtype), integers(real))
    if not same:
        raise UnrecordedError("it converts NaT")
    recorder.dated_results.add(result.index)
    return result


def emitted(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    values: Sequence[Any],
    real: Result,
    emit: Callable[[tuple[Symbol, ...]], Symbol],
) -> Symbol:
    """Return the symbol of a ufunc with datetimes or timedeltas, as ops on their counts.

    `emit` emits the ufunc on counts. Raises UnrecordedError if NumPy's result is not that of the
    counts, as with NaT.
    """
    if args is None or ufunc.nout > 1:
        raise UnrecordedError("it has no op, or not on these operands")
    if ufunc is np.isnat:
        nat = recorder.constant(np.int64(np.iinfo(np.int64).min))
        result = recorder.emit(ops.equal, (args[0], nat))
        recorder.dated_results.add(result.index)
        return result
    types: Any = [type(x) if _is_number(x) else np.asarray(x).dtype for x in values]
    loop: Any = ufunc.resolve_dtypes((*types, None), casting="unsafe")
    op, symbols = OPS[ufunc] or ops.add, list(args)
    counts: list[Array] = []
    for place, (symbol, value, into) in enumerate(zip(args, values, loop, strict=False)):
        array: Array = np.asarray(value)
        if is_dated(array.dtype) and is_dated(into):
            symbols[place] = rescaled(recorder, symbol, array, into)
        elif not symbol.weak:
            operand = op.operand(place)
            symbols[place] = recorder.cast(symbol, recorder.dtype(into), operand, op.name)
        counts.append(integers(array.astype(into)))
    to = loop[-1]
    with np.errstate(all="ignore"):
        if is_dated(to) and ufunc in _QUOTIENTS:
            result, expected = _quotient(recorder, symbols, counts)
        else:
            result, expected = emit(tuple(symbols)), np.asarray(ufunc(*counts))
        if is_dated(to) and expected.dtype.kind == "f":
            if not np.isfinite(expected).all():
                raise UnrecordedError("its operands or its result have NaT")
            result = recorder.converted(result, expected, DType.int64)
            expected = expected.astype(np.int64)
        out = np.asarray(real).dtype
        if is_dated(out) and out != to:
            dates: Array = expected.view(to)
            result = rescaled(recorder, result, dates, out)
            expected = integers(dates.astype(out))
    # Of NaT, as the least count, some products wrap to NaT, as no exact product does.
    wraps = ufunc in _WRAPPING and is_dated(np.asarray(real).dtype) and _has_nat(real)
    if wraps or not _equal(expected, integers(real)):
        raise UnrecordedError("its operands or its result have NaT")
    recorder.dated_results.add(result.index)
    return result


def _quotient(
    recorder: Recorder, symbols: Sequence[Symbol], counts: Sequence[Array]
) -> tuple[Symbol, Array]:
    """Return counts divided by numbers: of floats the quotient, of integers rounded toward zero.

    NumPy divides a timedelta by a number in this way under `//` too.
    """
    x, by = symbols
    if counts[1].dtype.kind == "f":
        return recorder.emit(ops.divide, (x, by)), np.divide(*counts)
    x = recorder.emit(ops.subtract, (x, recorder.emit(ops.fmod, (x, by))))
    whole = counts[0] - np.fmod(*counts)
    return recorder.emit(ops.floor_divide, (x, by)), np.floor_divide(whole, counts[1])


def in_unit(recorder: Recorder, x: Symbol, value: Any, to: np.dtype[Any]) -> Symbol:
    """Return the symbol `x` of a value in the unit of a dtype, if both have units."""
    real = plain(value)
    array: Array = np.asarray(real if isinstance(real, (np.ndarray, np.generic)) else 0)
    if not (is_dated(to) and is_dated(array.dtype)):
        return x
    result = rescaled(recorder, x, array, to)
    if result is not x:
        recorder.dated_results.add(result.index)
    return result


def mean(recorder: Recorder, x: Symbol, axes: tuple[int, ...], keepdims: bool = False) -> Symbol:
    """Return the mean of counts, which NumPy rounds toward zero."""
    total = recorder.emit(ops.sum, (x,), axis=axes, keepdims=bool(keepdims))
    sizes: Any = [x.shape[axis] for axis in axes]
    count = recorder.constant(np.int64(prod(sizes)))
    whole = recorder.emit(ops.subtract, (total, recorder.emit(ops.fmod, (total, count))))
    return recorder.emit(ops.floor_divide, (whole, count))


def require_one_unit(
    recorder: Recorder, symbols: Collection[Symbol], arguments: Sequence[Any], real: Any
) -> None:
    """Raise UnrecordedError unless ops on counts have the result of a function on dates.

    They do if its operands and its result have one unit, and no NaT that the ops may take for a
    number. `symbols` are those of the ops.
    """
    arrays = [plain(x) for x in leaves(arguments) if isinstance(x, (np.ndarray, np.generic))]
    dated = [x for x in (*arrays, real) if is_dated(np.asarray(x).dtype)]
    is_converted = any(x.index in recorder.dated_results for x in symbols)
    units = {np.datetime_data(np.asarray(x).dtype) for x in dated}
    if len({unit for unit in units if unit[0] != "generic"}) > 1 and not is_converted:
        raise UnrecordedError("its operands have several units")
    if _has_nat(*dated) and not all(x.op in _MOVING for x in symbols):
        raise UnrecordedError("its operands or its result have NaT")


def _is_number(value: Any) -> bool:
    """Whether a value is a Python number, whose type NumPy's loops take in place of a dtype."""
    return is_literal(value) and type(value) is not bool


def _has_nat(*arrays: Result) -> bool:
    return any(bool(np.isnat(array).any()) for array in arrays)


def _equal(x: Array, y: Array) -> bool:
    shapes = x.dtype == y.dtype and x.shape == y.shape
    return shapes and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
