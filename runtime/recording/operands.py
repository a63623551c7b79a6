"""The operands of opaque steps: the symbols of all recorded values in the arguments of a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.import_names import is_own_module
from graphir.public import Symbol
from graphir.runtime.recording.structured import structured_trace
from graphir.runtime.recording.values import (
    RecordedNumber,
    RecordedValue,
    RecordingTrace,
    Result,
    TracedScalar,
)
from graphir.semantics.library_calls import leaves

if TYPE_CHECKING:
    from graphir.runtime.recording.notes import NotingBuilder

_DISPATCHER = cast("type[Any]", type(np.sum))
_SIMPLE = (str, bytes, bool, int, float, complex, type(None), type, np.dtype, np.generic)
_WIDE = frozenset("?dD")
"""The NumPy dtypes of wide arithmetic, whose results cannot wrap."""
_WHOLE = frozenset(
    ("bincount", "busday_count", "busday_offset", "digitize", "is_busday", "lexsort", "packbits",
     "ravel_multi_index", "unpackbits", "unravel_index")
)  # fmt: skip
"""Compiled functions of NumPy that are exact for integers."""


class _UnknownOperandError(Exception):
    """Raised if an argument may read values that are not among the arguments."""


def operands(recorder: NotingBuilder, values: Any) -> tuple[Symbol, ...] | None:
    """Return the symbols of all recorded values in the arguments of calls.

    The answer is None if the call may read other values too, through an object or a function.
    """
    symbols: dict[int, Symbol] = {}
    try:
        for leaf in leaves(values):
            for symbol in _symbols(recorder, leaf):
                symbols[symbol.index] = symbol
    except _UnknownOperandError:
        return None
    return tuple(symbols.values())


def _symbols(recorder: NotingBuilder, value: Any) -> Iterator[Symbol]:
    if isinstance(value, (RecordedValue, TracedScalar)) and value.plain.dtype.names:
        array = value if isinstance(value, RecordedValue) else cast("Any", value).array
        trace = structured_trace(array, cast("Any", recorder))
        if trace is None or not trace.is_certain:
            raise _UnknownOperandError
        yield from trace.symbols()
    elif isinstance(value, RecordedNumber):
        yield value.scalar.symbol
    elif isinstance(value, TracedScalar):
        yield _required(value.symbol if value.recorder is recorder else None)
    elif isinstance(value, np.ndarray):
        if value.size and not is_text(cast("Any", value).dtype):
            yield _required(_known(recorder, cast("Any", value)))
    elif isinstance(value, (set, frozenset)):
        for part in leaves([*cast("Iterable[Any]", value)]):
            yield from _symbols(recorder, part)
    elif not (isinstance(value, _SIMPLE) or value is ... or _is_numpy(value)):
        raise _UnknownOperandError


def is_text(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is that of texts or bytes, which carry no error: what they were made of did.

    The recorder notes values of which the program makes texts as read.
    """
    return dtype.kind in "US"


def _required(symbol: Symbol | None) -> Symbol:
    if symbol is None:
        raise _UnknownOperandError
    return symbol


def _known(recorder: NotingBuilder, array: NDArray[Any]) -> Symbol | None:
    """Return the last symbol of the whole memory that an array is a view of; None if unknown."""
    trace = _trace(array) if isinstance(array, RecordedValue) else recorder.memory.owner(array)
    if trace is None or trace.recorder is not recorder:
        return None if isinstance(array, RecordedValue) else recorder.of_plain(array)
    return (trace.root or trace).last_symbol


def _trace(array: Any) -> RecordingTrace | None:
    """Return the trace of an array, or of the nearest array of which it is a view; or None."""
    while isinstance(array, RecordedValue):
        if array.recording_trace is not None:
            return array.recording_trace
        array = array.source
    return None


def _is_numpy(value: Any) -> bool:
    """Whether a value is a function of NumPy or of this project, which calls no user code."""
    if isinstance(value, np.ufunc):  # ufuncs of np.frompyfunc, on objects alone, call user code
        return not value.types or any(set(loop) - set("O->") for loop in value.types)
    if isinstance(value, _DISPATCHER):
        return True
    if not isinstance(value, (FunctionType, MethodType, BuiltinFunctionType)):
        return value is np._NoValue  # pyright: ignore
    module = str(getattr(value, "__module__", "") or "")
    return is_own_module(module) or module.partition(".")[0] in ("numpy", "_operator", "operator")


def is_wide(name: str, function: Any, operands: Iterable[Symbol] | None, real: Result) -> bool:
    """Whether a call of a NumPy function computes in wide arithmetic already.

    That is the case if operands are bool, float64 or complex128 and no result is narrower.
    Functions of positions are exact for integers too.
    """
    own = isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function
    own = own or isinstance(function, (_DISPATCHER, RecordedValue))
    if operands is None or not (own or name.startswith("numpy.")):
        return False
    if name.rpartition(".")[2] in _WHOLE:
        is_of_integers = all(x.dtype.family in ("bool", "int", "uint") for x in operands)
        return is_of_integers and real.dtype.kind not in "fc"  # weights of bincount
    dtypes = {np.dtype(x.dtype.storage).char for x in operands}
    return dtypes <= _WIDE and np.dtype(real.dtype).char in _WIDE | {"l", "q"}


def traced_leaves(value: Any) -> list[Any]:
    """Return the recorded values in a value, also inside lists, tuples, dicts and slices."""
    return [
        leaf.scalar if isinstance(leaf, RecordedNumber) else leaf
        for leaf in leaves(value)
        if isinstance(leaf, (RecordedValue, TracedScalar, RecordedNumber))
    ]
