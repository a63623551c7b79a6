"""Python's own functions of numbers on recorded values: `float(x)`, `sum(xs)`, `math.sqrt(x)`.

`IN_PLACE` has those of the builtins: in their place, watched code calls functions that return
recorded numbers, and look at a recorded value as Python looks at the plain one. The functions of
`math` and `cmath` have stand-ins, whose recorder is `record_math`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from graphir.runtime.recording.leaving import traced_leaves
from graphir.runtime.recording.numpy_.call_wrappers import noting_numbers
from graphir.runtime.recording.numpy_.creation import listed
from graphir.runtime.recording.numpy_.operand_proxies import left_operand, read_integer
from graphir.runtime.recording.numpy_.python_numbers import function_of, rounded, traced_float
from graphir.runtime.recording.numpy_.stand_ins import Maker
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedFloat,
    TracedInt,
    TracedScalar,
    active,
    plain,
    plains,
)

# -- builtins


def _type(*args: Any, **kwargs: Any) -> Any:
    return type(*map(plain, args)) if len(args) == 1 and not kwargs else type(*args, **kwargs)


def _float(*args: Any) -> float:
    value: Any = args[0] if len(args) == 1 else None
    if isinstance(value, TracedFloat):
        return value
    if isinstance(value, (RecordedValue, TracedScalar)) and value.plain.dtype.kind in "fiu":
        return traced_float(value, float(value.plain))
    return float(*args)


def _int(*args: Any) -> int:
    value: Any = args[0] if len(args) == 1 else None
    if isinstance(value, TracedInt):
        return value
    if isinstance(value, (TracedScalar, TracedFloat)) and isinstance(value.plain, _REALS):
        return rounded("int", value, int(cast("Any", value).plain))
    return int(*args)


_REALS = (float, np.integer, np.floating)


def _sum(values: Iterable[Any], /, start: Any = 0) -> Any:
    recorder = active()
    if recorder is None or not recorder.numbers.has_any:
        return sum(values, start)
    numbers = [*values]
    if not any(isinstance(x, TracedInt) for x in numbers):
        return noting_numbers(sum)(numbers, start)
    total: Any = start
    for number in numbers:
        total = left_operand(total) + number
    return total


def _enumerate(values: Iterable[Any], /, start: int = 0) -> Any:
    return enumerate(values, read_integer(start))


def _round(number: Any, /, ndigits: int | None = None) -> Any:
    return round(number) if ndigits is None else round(number, read_integer(ndigits))


def _map(function: Any, *iterables: Any) -> Any:
    is_number = function is float or function is int
    return map(IN_PLACE[id(function)] if is_number else function, *iterables)


def _hasattr(value: Any, name: str, /) -> bool:
    return hasattr(plain(value), name)


def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    owner = value if hasattr(plain(value), name) else plain(value)
    return getattr(owner, name, *default)


IN_PLACE: dict[int, Callable[..., Any]] = {
    id(float): _float,
    id(int): _int,
    id(type): _type,
    id(sum): _sum,
    id(map): _map,
    id(round): _round,
    id(enumerate): _enumerate,
    id(hasattr): _hasattr,
    id(getattr): _getattr,
}
"""Functions that look at recorded values as numbers, in place of Python's, by the id of these."""

# -- math and cmath

_NUMPY_NAMED = [
    getattr(math, name)
    for name in ("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
                 "sinh", "cosh", "tanh", "fabs", "degrees", "radians")
]  # fmt: skip
"""The functions of Python's math that NumPy has under the same names."""
_ROUNDINGS = {math.floor: np.floor, math.ceil: np.ceil, math.trunc: np.trunc}


def record_math(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Call a function of Python's math modules, which reads recorded values as Python numbers."""
    args = tuple(listed(recorder, arg) for arg in args)
    is_of_one = len(args) == 1 and bool(traced_leaves(args)) and np.ndim(plain(args[0])) == 0
    if is_of_one and original in _NUMPY_NAMED:
        number = recorder.call(original, plains(args), {})
        return function_of(original.__name__, args[0], number)
    if is_of_one and original in _ROUNDINGS:
        number = recorder.call(original, plains(args), {})
        return rounded(original.__name__, args[0], number, _ROUNDINGS[original])
    recorder.setting(original.__name__, [list(args), kwargs])
    for arg in args:
        if isinstance(arg, RecordedValue):
            recorder.note(original.__name__, "makes Python numbers: they are taken as literals")
    return recorder.call(original, plains(args), plains(kwargs))
