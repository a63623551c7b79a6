"""Smaller thresholds of the planner, so that drawn programs reach every path at small sizes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from graphir.runtime.program.cost_model import COST, NATIVE_BLOCK_LEAST, CostModel

_SIZES = ("Elements", "Bytes", "Terms", "Nanoseconds")
"""The units of thresholds of size."""

_LEAST = {"NATIVE_BLOCK": NATIVE_BLOCK_LEAST}
"""The least values of thresholds that are more than 1."""


@contextmanager
def scaled(sizes: int, counts: int = 1, **others: float) -> Generator[None]:
    """Divide all thresholds of size by `sizes`, and all counts by `counts`, inside of a block.

    With `scaled(512)` a rewrite that starts at 4,096 elements starts at 8.
    The result is 1 at least. `others` are further values by name. All threads see the change.
    """
    divisors = {**dict.fromkeys(_SIZES, sizes), "Count": counts, "Rate": 1}
    before = vars(COST).copy()
    try:
        for name, unit in CostModel.__annotations__.items():
            if (divisor := divisors[unit]) != 1:
                value = getattr(CostModel, name) // divisor
                setattr(COST, name, max(_LEAST.get(name, 1), value))
        for name, value in others.items():
            if name not in CostModel.__annotations__:
                raise AttributeError(f"there is no threshold {name}")
            setattr(COST, name, value)
        yield
    finally:
        vars(COST).clear()
        vars(COST).update(before)
