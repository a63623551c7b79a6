"""A table of kernels by op name: primitives, and composite ops by their decompositions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from graphir.ops.catalogue import CATALOGUE
from graphir.ops.op import Op, find

Kernel: TypeAlias = Callable[..., Any]


class KernelTable(dict[str, Kernel]):
    """A dict of kernels by op name, in the order of the catalogue.

    The kernel of an op is its row in `kernels`, or its own kernel, or its decomposition on
    `primitives(table)`, the namespace that decompositions call. A missing name is looked up among
    the registered ops; KeyError if the op has no kernel.
    """

    def __init__(self, kernels: Mapping[str, Kernel], primitives: Callable[[Any], Any]) -> None:
        super().__init__()
        self.primitives = primitives(self)
        for name, op in CATALOGUE.items():
            kernel = kernels.get(name) or self._own(op)
            if kernel is not None:
                self[name] = kernel

    def __missing__(self, name: str) -> Kernel:
        kernel = self._own(find(name))
        if kernel is None:
            raise KeyError(name)
        self[name] = kernel
        return kernel

    def _own(self, op: Op) -> Kernel | None:
        if op.kernel is not None or op.decomposition is None:
            return op.kernel
        return partial(op.decomposition.function, self.primitives)
