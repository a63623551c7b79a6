"""The record of a kernel: the function, its arguments, and what makes it hard to trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

KERNELS: list[Kernel] = []


@dataclass(frozen=True)
class Kernel:
    """A function with a maker of arguments, and facts that tests count by.

    `writes`: it changes its arguments. `scalars`: it loops over single elements. `depends`: its
    "control" (branches, numbers of rounds, Python integers) or "shapes" depend on values.
    """

    function: Callable[..., Any]
    make: Callable[[np.random.Generator], tuple[Any, ...]]
    writes: bool
    scalars: bool
    depends: str

    @property
    def name(self) -> str:
        return self.function.__name__

    def arguments(self) -> tuple[Any, ...]:
        """New arguments, the same at every call."""
        return self.make(np.random.default_rng(20240607))


def kernel(
    make: Callable[[np.random.Generator], tuple[Any, ...]],
    *,
    writes: bool = False,
    scalars: bool = False,
    depends: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: list the function in `KERNELS`, and leave it as it is."""

    def listed(function: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS.append(Kernel(function, make, writes, scalars, depends))
        return function

    return listed
