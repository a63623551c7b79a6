"""Which ops the methods of ndarray are that ask no ufunc.

Each is called `(recorder, x, values, *args, **kwargs)` with the symbol of the array, its values and
the arguments of the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import Signature, signature
from typing import Any

import numpy as np

from graphir import Symbol, ops
from graphir.numpy_api.functions import FUNCTIONS
from graphir.numpy_api.views.steps import Pick
from runtime.recording.recorder import Recorder
from runtime.recording.values import UnrecordedError, plains

Symbolic = Callable[..., Symbol]


# -- methods that are functions


def function(of: Any, operands: int = 0) -> Symbolic:
    """The function of symbols that a method is; after its array some of its arguments are such."""
    takes = _signature(of)

    def enter(recorder: Recorder, x: Symbol, values: Any, *args: Any, **kwargs: Any) -> Symbol:
        arguments = list(takes.bind(x, *args, **kwargs).arguments.items())[1:]
        symbols = [recorder.symbol(value) for _, value in arguments[:operands]]
        settings = dict(arguments[operands:])
        recorder.setting(f"an argument of {of.__name__}", settings)
        return recorder.applied(of, x, *symbols, **numpy_settings(recorder, plains(settings)))

    return enter


def numpy_settings(recorder: Recorder, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with a dtype as NumPy reads it: its codes, and Python's types."""
    dtype = settings.get("dtype")
    if dtype is None:
        return settings
    return {**settings, "dtype": recorder.dtype(np.dtype(dtype))}


def _signature(of: Any) -> Signature:
    try:
        return signature(of)
    except ValueError:  # compiled, in a NumPy that does not tell
        return signature(FUNCTIONS[of])


def places_of(x: Symbol) -> Any:
    """The place of each element in row-major order."""
    shape: Any = x.shape
    line: Any = np.arange(math.prod(shape))
    return line.reshape(shape)


def filled(recorder: Recorder, real: Any, value: Any) -> Symbol:
    """One value everywhere."""
    dtype = recorder.dtype(real.dtype)
    return recorder.create(ops.full, dtype=dtype, value=value, shape=real.shape)


def not_an_op(*_: Any, **__: Any) -> Symbol:
    """Of a method that no op is: the result is taken as given."""
    raise UnrecordedError("it has no op")


# -- order


def sorting(recorder: Recorder, x: Symbol, values: Any, axis: Any = -1, **settings: Any) -> Symbol:
    """Of argsort, where NumPy leaves equal values in their order, as the op does."""
    if not np.array_equal(values.argsort(axis, **settings), values.argsort(axis, kind="stable")):
        raise UnrecordedError("equal values are not in their order")
    return recorder.applied(np.argsort, x, axis)


# -- moved elements


def by_places(name: str) -> Symbolic:
    """Any method that only moves elements: what it does to their places."""

    def enter(recorder: Recorder, x: Symbol, values: Any, *args: Any, **kwargs: Any) -> Symbol:
        recorder.setting(f"an argument of {name}", [args, kwargs])
        new_places = getattr(places_of(x), name)(*plains(args), **plains(kwargs))
        return Pick(np.asarray(new_places)).forward(recorder, x)

    return enter
