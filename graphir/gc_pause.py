"""A decorator that pauses the cyclic garbage collector in allocation-heavy functions.

CPython starts a collection after a number of allocations. In functions whose allocations all
survive, those collections find no garbage and only cost time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with the cyclic garbage collector paused.

    The collector would walk every symbol of a graph again and again and find no garbage.
    implicit_cast of 60,000 ops takes 110 ms with the collector paused, and 420 ms without the
    pause.
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
