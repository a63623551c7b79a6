"""The whole programs for jax.numpy: the NumPy ones with `np` bound to it, but for writes."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import jax.numpy as jnp

from tests.benchmarks import whole_numpy


def heat_steps(field):
    for _ in range(8):
        around = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
        field = field.at[1:-1, 1:-1].add(0.1 * (around - 4 * field[1:-1, 1:-1]))
    return field


def function(name: str) -> Callable[..., Any]:
    """The program of that name over jax.numpy."""
    if name in globals():
        return globals()[name]
    names: dict[str, Any] = {"np": jnp}
    for key, value in vars(whole_numpy).items():
        if isinstance(value, FunctionType):
            names[key] = FunctionType(value.__code__, names, key, value.__defaults__)
    return names[name]
