"""What a recording notes of results: those without ops, and those that a graph rounds otherwise.

`OpaqueResults` makes an input of the graph of each result that no op describes, with the opaque
step that made it; a function of NumPy whose inner steps hide errors becomes one such step, which an
audit can measure. `ResultRounding` keeps NumPy's values of results for which a run of the graph may
have others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphir.ir.literals import native
from graphir.public import DType, Symbol, ops
from graphir.runtime.audit.library_calls import CallResult
from graphir.runtime.audit.opaque import OpaqueStep
from graphir.runtime.recording.builder import beyond_range, is_truncation
from graphir.runtime.recording.leaving import is_text, is_wide, traced_leaves
from graphir.runtime.recording.leaving import operands as operands_of
from graphir.runtime.recording.numpy_ import dates
from graphir.runtime.recording.recorder_state import arrays_in
from graphir.runtime.recording.structured import StructuredTrace, leaf_fields
from graphir.runtime.recording.values import Array, RecordedValue, Result, plain
from graphir.semantics.library_calls import leaves, mapped
from graphir.semantics.sums import rounds_each_sum

if TYPE_CHECKING:
    from graphir.runtime.recording.recorder import Recorder


class OpaqueResults:
    """The results of a recorded program that no op describes, each with its opaque step."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def add(self, name: str, real: Result, why: str = "it is compiled") -> Symbol:
        """Add an input for the result of a function without an op; return its symbol."""
        recorder = self._recorder
        what, arguments = recorder.calls.function_name(name), recorder.calls.arguments
        running = recorder.calls.measured(name)
        symbol, operands = recorder.input(real), operands_of(recorder, arguments)
        if operands == () and any(is_text(plain(x).dtype) for x in traced_leaves(arguments)):
            recorder.program_arrays.data.append(symbol)  # texts are data, as those of files are
            return symbol
        exact = is_wide(what, recorder.calls.target, operands, real)
        place = None if running is None else recorder.calls.place(running, real)
        result = None
        has_floats = running is not None and any(x.dtype.is_inexact for x in running.symbols)
        if dates.is_dated(real.dtype):
            running, exact = None, exact or what == "numpy.unique"
        if running is not None and place is not None and (has_floats or not exact):
            operands, result, exact = running.symbols, CallResult(running.call, place), False
        recorder.step(what, f"is taken as given: {why}", (symbol,), operands, exact, result)
        recorder.note(what, f"is taken as given: {why}")
        return symbol

    def structured(self, name: str, real: Array) -> RecordedValue:
        """Return a structured result of a function, whose fields are taken as given.

        Without recorded operands the fields are constants, and of untouched data they are data.
        Functions on structured arrays move their elements: equal operands give equal results,
        unless the function converts them to other dtypes.
        """
        recorder = self._recorder
        what, arguments = recorder.calls.function_name(name), recorder.calls.arguments
        operands = operands_of(recorder, arguments)
        sources = [plain(leaf) for leaf in traced_leaves(arguments)]
        dtypes = {field.dtype for x in sources for _, field in leaf_fields(x)}
        exact = not sources or dtypes.issuperset(field.dtype for _, field in leaf_fields(real))

        def take(field: Array) -> Symbol:
            if operands == () and exact:
                add_data = recorder.program_arrays.add_data
                return add_data(field, None) if sources else recorder.constant_array(field)
            symbol = recorder.input(field)
            reason = "is taken as given: no op has structured results"
            recorder.step(what, reason, (symbol,), operands, exact)
            recorder.note(what, reason)
            return symbol

        is_certain = exact and operands == ()
        return recorder.traced(real, StructuredTrace(recorder, real, take, is_certain))

    def as_one_step(self, name: str, result: Any, since: int) -> Any:
        """Return the result of a function as that of one step with a call; or None.

        The function has finished without writes to its arguments. It is one step if one of its
        inner steps, those from number `since` on, can be measured by no call.
        """
        recorder = self._recorder
        if not any(map(_is_unmeasured, recorder.steps[since:])):
            return None
        running, arrays = recorder.calls.measured(name), arrays_in(result)
        if running is None or not arrays or not all(recorder.has(x.dtype) for x in arrays):
            return None
        if any(dates.is_dated(x.dtype) for x in arrays):
            return None
        if len(arrays) < len([*leaves(result)]) or any(type(x) is np.bool_ for x in arrays):
            return None  # a number or a bool of Python, by which the program may go on
        operands = list(map(plain, running.call.operands))
        if any(np.may_share_memory(x, y) for x in arrays for y in operands):
            return None
        recorder.forget_steps(since)
        places = iter(range(len(arrays)))

        def step_result(leaf: Any) -> Any:
            if not isinstance(leaf, (np.ndarray, np.generic)):
                return leaf
            real, place = plain(leaf), next(places)
            symbol, reason = recorder.input(real), "is taken as given: its parts have no ops"
            call, exact = CallResult(running.call, place), is_wide(name, None, (), real)
            exact = exact and not running.symbols  # as of lists of numbers
            recorder.step(name, reason, (symbol,), running.symbols, exact, result=call)
            return recorder.wrapped(real, symbol)

        return mapped(step_result, result)


def _is_unmeasured(step: OpaqueStep) -> bool:
    """Whether a step may hide an error, and no call measures it."""
    if step.exact and (not step.results or step.operands is None):
        return False
    has_floats = any(x.dtype.is_inexact for x in step.operands or ())
    return step.call is None and (not step.exact or has_floats)


_ROUNDED_AT_EACH_STEP = ("reduction", "contraction", "rowwise")
"""The kinds of ops whose float16 sums NumPy rounds at each step; graphs round them once."""
_ROUNDS_EACH_STEP = "rounds each step to float16: a run of the graph rounds the result once"


class ResultRounding:
    """NumPy's values of results that a run of the graph may round or truncate otherwise."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def note_halves(self, name: str, symbol: Symbol, real: Result, symbols: list[Symbol]) -> None:
        """Keep NumPy's result of float16 sums, and note that a run of the graph may have another.

        `symbols` are those of the ops of the result.
        """
        recorder = self._recorder
        if not any(each.op.kind in _ROUNDED_AT_EACH_STEP for each in symbols):
            return
        recorder.observed[symbol] = np.array(native(np.asarray(real)), order="C")
        what = recorder.calls.function_name(name)
        if any(map(_rounds_each_step, symbols)):
            recorder.note(what, _ROUNDS_EACH_STEP)
        elif any(each.op.kind == "contraction" for each in symbols):
            recorder.note_order(what, symbol, real)

    def pinned(self, symbol: Symbol, real: Result, since: int) -> Symbol:
        """Return the symbol of a result, pinned to NumPy's values if a cast may have overflowed.

        Such a cast truncates floats, some of which may lie beyond the range of the integer dtype.
        `since` is the number of symbols before the ops of this result.
        """
        recorder = self._recorder
        for each in recorder.graph.symbols[since:]:
            narrowing = each.op is ops.cast or each.attrs.get("dtype") is not None
            if narrowing and each.args and each.index not in recorder.exact_truncations:
                source, to = each.args[0].dtype, each.dtype
                if is_truncation(source, to) and self._may_leave(to):
                    return recorder.pinned(symbol, real)
        return symbol

    def _may_leave(self, to: DType) -> bool:
        """Whether a float argument of the current call may be beyond the range of `to`."""
        arrays = [plain(leaf) for leaf in traced_leaves(list(self._recorder.calls.arguments[-1:]))]
        floats = [np.real(array) for array in arrays if array.dtype.kind in "fc"]
        return not floats or any(beyond_range(np.asarray(array), to).any() for array in floats)


def _rounds_each_step(symbol: Symbol) -> bool:
    """Whether NumPy rounds each sum or product of float16 on the way to a result of an op."""
    op, attrs = symbol.op, symbol.attrs
    if symbol.type.dtype is not DType.float16:
        return False
    if op in (ops.prod, ops.cumulative_sum, ops.cumulative_prod):
        return True
    shape = symbol.args[0].shape if symbol.args else ()
    is_sum = op in (ops.sum, ops.numpy_sum, ops.var, ops.std)
    return is_sum and rounds_each_sum(shape, attrs["axis"])
