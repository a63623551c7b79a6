"""A table of kernels by op name, which finds the kernels of registered ops on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from graphir.ops.op import find

Kernel: TypeAlias = Callable[..., Any]


class KernelTable(dict[str, Kernel]):
    """A dict of kernels by op name. A missing name is looked up among the registered ops.

    The entry is then the op's own kernel, or else its decomposition on `primitives`, a namespace of
    primitives for arrays. Raises KeyError for an op that has neither.
    """

    def __init__(self, kernels: Mapping[str, Kernel], primitives: Any) -> None:
        super().__init__(kernels)
        self.primitives = primitives

    def __missing__(self, name: str) -> Kernel:
        op = find(name)
        kernel = op.kernel
        if kernel is None and op.decomposition is not None:
            kernel = partial(op.decomposition.function, self.primitives)
        if kernel is None:
            raise KeyError(name)
        self[name] = kernel
        return kernel
