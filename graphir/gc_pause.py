"""The cyclic garbage collector paused in functions that allocate much and keep it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with the cyclic garbage collector paused.

    The collector would walk every symbol of a graph again and again and find nothing: implicit_cast
    of 60,000 ops takes 110 ms so, and 420 ms with it.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run
