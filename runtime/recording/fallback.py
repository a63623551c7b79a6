"""The fallback of recording: opaque calls on plain arrays, whose results become inputs.

A recorded program can meet two kinds of errors. An error of NumPy belongs to the program and
passes to it; such an error comes out of `Recorder.call`, the only way to NumPy. Any other error is
a fault of the recording. The fallback then makes the call on plain arrays, unless the call has been
made already. If the plain call raises, the error belongs to the program after all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, cast

import numpy as np

from graphir.passes.analysis.value_flows import WRITERS
from graphir.public import Symbol
from graphir.runtime.recording.leaving import AS_NUMBER, traced_leaves
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.recorder_state import UNDONE, CallForm, RunningCall
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedScalar,
    UnrecordedError,
    active,
    recording_with,
    trace_of,
    view_of,
)
from graphir.semantics.library_calls import leaves

Handler = Callable[..., Any]


def with_fallback(fallback: Handler, form: CallForm) -> Callable[[Handler], Handler]:
    """Return a decorator of handlers that adds the fallback `fallback(*args, **kwargs)`.

    The decorated handler takes the fallback if no recorder is active, and if the handler itself
    fails before it has made the call. Each call of the program is made once. `form` says what the
    arguments of the handler are.
    """

    def wrap(handle: Handler) -> Handler:
        @wraps(handle)
        def call(*args: Any, **kwargs: Any) -> Any:
            recorder = active()
            if recorder is None:
                return fallback(*args, **kwargs)
            running = recorder.calls.enter(form, args, kwargs)
            since, steps = len(recorder.graph.symbols), len(recorder.steps)
            try:
                try:
                    result = handle(*args, **kwargs)
                    if recorder.numbers.has_any:
                        note_untaken(recorder, running, result, since, steps)
                    return result
                except Exception as error:
                    if error is running.error:
                        raise
                    fault = error
                name = getattr(args[0], "__name__", handle.__name__)
                if running.result is UNDONE:
                    result = opaque(recorder, name, fallback, args, kwargs)
                else:
                    arrays = arrays_of((args, kwargs))
                    result = _keep_result(recorder, name, running.result, arrays)
                recorder.add_fault(fault)  # the plain call succeeded: the fault is the recording's
                return result
            finally:
                recorder.calls.leave(running)

        return call

    return wrap


def note_untaken(
    recorder: Recorder, running: RunningCall, result: Any, since: int, steps: int
) -> None:
    """Note each recorded number of a call that no op of the call has taken: as read.

    `since` and `steps` are the numbers of symbols and of opaque steps before the call.
    """
    args, kwargs = running.args, running.kwargs
    if running.form == "ufunc" and args[1] == "__call__" and not args[3]:
        return  # all operands are those of the op, or of the step
    if running.form == "operator" and hasattr(result, "dtype"):
        return
    scalars = [x for x in traced_leaves((args, kwargs)) if isinstance(x, TracedScalar)]
    scalars = [x for x in scalars if x.recorder is recorder]
    name = getattr(args[0], "__name__", "a call")
    if not scalars or isinstance(result, (np.dtype, type)) or name in WRITERS:
        return
    if any(args[0] is function for function in OF_TYPES) or name == "_array_converter":
        return  # whose recorder notes the reads
    arrays = [*traced_leaves(result), *arrays_of((args, kwargs))]
    # The symbol of a view is made here, if nothing has read the view.
    operands = {x.index for x in map(recorder.before, arrays) if x is not None}
    operands.update(x.index for symbol in recorder.graph.symbols[since:] for x in symbol.args)
    operands.update(x.index for step in recorder.steps[steps:] for x in step.operands or ())
    for scalar in scalars:
        if scalar.symbol.index not in operands:
            recorder.read(name, scalar, AS_NUMBER)


OF_TYPES: Any = (
    *(np.ndim, np.shape, np.size, np.iscomplexobj, np.isrealobj),
    *(np.result_type, np.can_cast, np.min_scalar_type, np.common_type),
)
"""Functions that ask a number for its type alone."""


def opaque(
    recorder: Recorder, name: str, fallback: Handler, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Make an opaque call on plain arrays; its results, and arrays it wrote to, become inputs."""
    arrays = [array for array in arrays_of((args, kwargs)) if array.flags.writeable]
    before = [array.plain.tobytes() for array in arrays]
    for array in arrays:
        recorder.before(array)
    recorder.calls.measure(name)
    with recording_with(None):
        real = recorder.call(fallback, args, kwargs)
    pairs = zip(arrays, before, strict=True)
    changed = [array for array, bytes_before in pairs if array.plain.tobytes() != bytes_before]
    note_writes(recorder, name, changed)
    return wrap_result(recorder, name, real, arrays)


def _keep_result(recorder: Recorder, name: str, real: Any, arrays: Sequence[RecordedValue]) -> Any:
    """Return the result of a completed call, and mark all writeable arrays as written."""
    note_writes(recorder, name, [array for array in arrays if array.flags.writeable])
    return wrap_result(recorder, name, real, arrays)


def note_writes(recorder: Recorder, name: str, arrays: Sequence[RecordedValue]) -> None:
    """Enter the values of arrays that a call wrote to as inputs."""
    for array in arrays:
        trace_of(array, recorder).write(recorder.result_symbol(name, array.plain, _nothing))


def arrays_of(value: Any) -> list[RecordedValue]:
    """Return the recorded arrays in a value, also inside lists, tuples and dicts."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, RecordedValue)]


def wrap_result(recorder: Recorder, name: str, real: Any, arrays: Sequence[RecordedValue]) -> Any:
    """Return a result in the form that the program gets.

    An array of the result is one of `arrays`, a view of one of them, or a new input of the graph.
    """
    kind: Any = cast("object", type(real))
    if kind is tuple or kind is list:
        return kind(wrap_result(recorder, name, array, arrays) for array in real)  # pyright: ignore
    if kind is np.ndarray:
        for array in arrays:
            if real is array.plain:
                return array
            if np.may_share_memory(real, array.plain):
                return view_of(array, real)
    if not isinstance(real, (np.ndarray, np.generic)):
        return real
    return recorder.outcome(name, real, _nothing)


def _nothing() -> Symbol:
    raise UnrecordedError("it is compiled")


def repeatable(recorder: Recorder, value: Any, since: int) -> bool:
    """Whether a failed call on some arguments can be repeated.

    The call must not have written to an argument since write number `since`. A function among the
    arguments belongs to the program and must not be called twice.
    """
    for leaf in leaves(value):
        if isinstance(leaf, RecordedValue):
            recorder.before(leaf)  # detects writes by compiled code
            trace = trace_of(leaf, recorder)
            if (trace.root or trace).version > since:
                return False
        elif callable(leaf) and not isinstance(leaf, type):
            return False
    return True
