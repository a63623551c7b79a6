"""A table of kernels by the names of ops: those listed, then those that registered ops bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from graphir.ops.op import find

Kernel: TypeAlias = Callable[..., Any]


class KernelTable(dict[str, Kernel]):
    """A dict of kernels in which the op of a name that is not listed brings its own.

    That is the op's kernel, else its decomposition, on a namespace of primitives for arrays.
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
