"""What jit and record make of a call, in one word: compared with NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphir import GraphirError
from graphir.runtime import interpret, jit, record
from tests.numpy_reference.arguments import UNSET, Call

RUNS, PLAINLY, REFUSED, WRONG, RAISES = "runs", "runs plainly", "refused", "wrong", "raises"


class Outcome(NamedTuple):
    """One of the words above, with what differs or the error."""

    word: str
    detail: str = ""


def jitted(call: Call) -> Outcome:
    """The call as the body of a jitted function of its data."""

    def run(*data: Any) -> tuple[Any, bool]:
        function = jit(call.body())
        result = function(*data)
        return result, _calls_compiled(function, data)

    return _judged(call, run, exact_types=False)


def recorded(call: Call) -> Outcome:
    """The call as the body of a recorded function of its data."""

    def run(*data: Any) -> tuple[Any, bool]:
        recording = record(call.body(), *data)
        if len(recording.outputs):
            _assert_replays(recording)
        return recording.result, bool(recording.notes)

    return _judged(call, run, exact_types=True)


FRONT_ENDS: dict[str, Callable[[Call], Outcome]] = {"jit": jitted, "record": recorded}


def _assert_replays(recording: Any) -> None:
    """Assert that the graph computes the outputs again, but for the order of sums and products."""
    values = interpret(recording.graph, *recording.inputs)
    values = values if isinstance(values, tuple) else (values,)
    for output, value in zip(recording.outputs, values, strict=True):
        if output.dtype.kind in "mM":
            output = output.view(np.int64)  # the graph has the counts of dates
        assert (output.dtype, output.shape) == (value.dtype, value.shape)
        tolerance = 2e-3 if output.dtype in (np.float16, np.float32, np.complex64) else 1e-12
        np.testing.assert_allclose(value, output, rtol=tolerance, atol=tolerance)


def _judged(call: Call, run: Callable[..., tuple[Any, bool]], *, exact_types: bool) -> Outcome:
    expected, after = call.expected()
    data = call.data()
    with warnings.catch_warnings(), np.errstate(all="ignore"), np.printoptions():
        warnings.simplefilter("ignore")
        try:
            result, plainly = run(*data)
        except GraphirError as error:
            return Outcome(REFUSED, f"{type(error).__name__}: {error}")
        except AssertionError as error:
            return Outcome(WRONG, f"the graph computes something else: {error}")
        except Exception as error:
            return Outcome(RAISES, f"{type(error).__name__}: {error}")
        values = call.target.path not in UNSET
        difference = _difference(expected, result, exact_types, values)
        difference = difference or _difference(after, data, exact_types, values)
    if difference:
        return Outcome(WRONG, difference)
    return Outcome(PLAINLY if plainly else RUNS)


def _calls_compiled(function: Any, data: Any) -> bool:
    """Whether the graph has steps of another library, called on values."""
    return any(symbol.op.name == "call" for symbol in function.traced(*data).graph)


def _difference(expected: Any, result: Any, exact_types: bool, values: bool) -> str:
    """Where two results differ, or nothing: any NaN equals any NaN, -0.0 is not 0.0."""
    if isinstance(expected, (tuple, list)):
        if not isinstance(result, (tuple, list)) or len(expected) != len(result):
            return f"{expected!r} in NumPy, {result!r} here"[:300]
        pairs = zip(expected, result, strict=True)
        return next(filter(None, (_difference(*p, exact_types, values) for p in pairs)), "")
    if isinstance(expected, (np.ndarray, np.generic)) or _is_number(expected):
        return _array_difference(expected, result, exact_types, values)
    if hasattr(expected, "__next__"):
        return _difference(list(expected), list(result), exact_types, values)
    same = type(expected).__eq__ is object.__eq__ or expected == result
    same = same and (isinstance(result, type(expected)) or not exact_types)
    return "" if same else f"{expected!r} in NumPy, {result!r} here"[:300]


def _array_difference(expected: Any, result: Any, exact_types: bool, values: bool) -> str:
    if exact_types and type(expected) is not type(result):
        return f"{type(expected).__name__} in NumPy, {type(result).__name__} here"
    if not (isinstance(result, (np.ndarray, np.generic)) or _is_number(result)):
        return f"{expected!r} in NumPy, {result!r} here"[:300]
    one, other = np.asarray(expected), np.asarray(result)
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{list(one.shape)} in NumPy, {other.dtype}{list(other.shape)} here"
    if one.dtype == object:
        return "" if not values or one.tolist() == other.tolist() else "other objects"
    if not values or _bits(one) == _bits(other):
        return ""
    return f"{one.tolist()!r} in NumPy, {other.tolist()!r} here"[:300]


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _bits(array: Any) -> bytes:
    if array.dtype.kind in "fc":
        parts = np.stack([array.real, array.imag])
        return np.where(np.isnan(parts), np.array(np.nan, parts.dtype), parts).tobytes()
    return array.tobytes()
