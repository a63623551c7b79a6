"""The ops of ndarray methods that do not dispatch to a ufunc.

Each function here takes `(recorder, x, values, *args, **kwargs)`: the symbol of the array, its
values, and the arguments of the method. It returns the symbol of the result.
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
    """Return the function that records a method by the NumPy function `of`.

    After the array, the first `operands` arguments are operands too; the others are settings.
    """
    takes = _signature(of)

    def enter(recorder: Recorder, x: Symbol, values: Any, *args: Any, **kwargs: Any) -> Symbol:
        arguments = list(takes.bind(x, *args, **kwargs).arguments.items())[1:]
        symbols = [recorder.symbol(value) for _, value in arguments[:operands]]
        settings = dict(arguments[operands:])
        recorder.setting(f"an argument of {of.__name__}", settings)
        return recorder.applied(of, x, *symbols, **numpy_settings(recorder, plains(settings)))

    return enter


def numpy_settings(recorder: Recorder, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with `dtype` as a DType; NumPy's codes and Python's types are converted."""
    dtype = settings.get("dtype")
    if dtype is None:
        return settings
    return {**settings, "dtype": recorder.dtype(np.dtype(dtype))}


def _signature(of: Any) -> Signature:
    try:
        return signature(of)
    except ValueError:  # a compiled function, in a NumPy without text signatures
        return signature(FUNCTIONS[of])


def places_of(x: Symbol) -> Any:
    """Return the row-major position of each element of x, as an array with the shape of x."""
    shape: Any = x.shape
    line: Any = np.arange(math.prod(shape))
    return line.reshape(shape)


def filled(recorder: Recorder, real: Any, value: Any) -> Symbol:
    """Return a symbol with one value everywhere, of the dtype and shape of `real`."""
    dtype = recorder.dtype(real.dtype)
    return recorder.create(ops.full, dtype=dtype, value=value, shape=real.shape)


def not_an_op(*_: Any, **__: Any) -> Symbol:
    """Raise UnrecordedError for a method without an op, so that its result becomes an input."""
    raise UnrecordedError("it has no op")


# -- order


def sorting(recorder: Recorder, x: Symbol, values: Any, axis: Any = -1, **settings: Any) -> Symbol:
    """Record argsort, if NumPy keeps the order of equal values here, as the stable op does.

    Raises UnrecordedError otherwise.
    """
    if not np.array_equal(values.argsort(axis, **settings), values.argsort(axis, kind="stable")):
        raise UnrecordedError("equal values are not in their order")
    return recorder.applied(np.argsort, x, axis)


# -- moved elements


def by_places(name: str) -> Symbolic:
    """Return the function that records a method which only moves elements.

    The function applies the method to the positions of the elements, and gathers by the result.
    """

    def enter(recorder: Recorder, x: Symbol, values: Any, *args: Any, **kwargs: Any) -> Symbol:
        recorder.setting(f"an argument of {name}", [args, kwargs])
        new_places = getattr(places_of(x), name)(*plains(args), **plains(kwargs))
        return Pick(np.asarray(new_places)).forward(recorder, x)

    return enter
