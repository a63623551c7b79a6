"""`out=` of NumPy's functions: arrays of the program that receive results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.location import ASSIGN
from graphir.public import Symbol
from graphir.runtime.recording.builder import is_truncation
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import RecordedValue, Result, plain, plains, trace_of


def outs_of(out: Any, count: int) -> tuple[Any, ...]:
    """Return the arrays of `out=` as a tuple of `count`, with None for each new array.

    `...` also stands for a new array: it asks NumPy for a 0-d array instead of a scalar.
    """
    if out is None or out is ...:
        return (None,) * count
    outs = cast("tuple[Any, ...]", out if isinstance(out, tuple) else (out,))
    return tuple(None if each is ... else each for each in outs)


def plain_kwargs(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a call with plain values, in NumPy's form."""
    settings = {name: plains(value) for name, value in kwargs.items()}
    out = settings.get("out")
    if isinstance(out, tuple) and out[0] is ...:
        settings["out"] = ...
    return settings


def returned(out: Any, real: Any) -> Any:
    """Return the result of a call with `out=`: the arrays of `out`, and new results elsewhere."""
    if not isinstance(real, tuple):
        into = outs_of(out, 1)[0]
        scalar = isinstance(cast("object", real), np.generic)  # np.dot returns one despite out=
        return real if into is None or scalar else into
    results = cast("tuple[Any, ...]", real)
    outs = outs_of(out, len(results))
    return tuple(r if o is None else o for o, r in zip(outs, results, strict=True))


def store(recorder: Recorder, name: str, out: NDArray[Any], symbolic: Callable[[], Symbol]) -> None:
    """Note that NumPy stored a result in an array, after an implicit cast to its dtype."""

    real = plain(out)

    def enter() -> Symbol:
        result, to = symbolic(), recorder.dtype(out.dtype)
        cast = recorder.cast(result, to, "result", result.op.name, ASSIGN)
        if is_truncation(result.dtype, to):  # the uncast result, and so its range, is unknown
            recorder.exact_truncations.add(cast.index)
            return recorder.pinned(recorder.broadcast(cast, out.shape), real)
        return recorder.broadcast(cast, out.shape)

    symbol = recorder.result_symbol(name, real, enter)
    if isinstance(out, RecordedValue):
        trace_of(out, recorder).write(symbol)
    else:
        recorder.memory.note_plain_write(out, symbol)


def stored(
    recorder: Recorder, name: str, out: NDArray[Any], real: Result, symbolic: Callable[[], Symbol]
) -> Any:
    """Note that NumPy stored a result in an array, and return the result of the call."""
    store(recorder, name, out, symbolic)
    return returned(out, recorder.wrapped(real, recorder.before(out)))
