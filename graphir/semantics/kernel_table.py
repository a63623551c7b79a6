"""A table of kernels by the names of ops: those listed, then those that registered ops bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from graphir.ops.op import find

Kernel: TypeAlias = Callable[..., Any]


class KernelTable(dict[str, Kernel]):
    """A dict of kernels in which the op of a name that is not listed brings its own."""

    def __missing__(self, name: str) -> Kernel:
        kernel = find(name).kernel
        if kernel is None:
            raise KeyError(name)
        self[name] = kernel
        return kernel
