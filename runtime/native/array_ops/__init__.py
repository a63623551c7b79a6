"""Kernels of ops on whole arrays, each compiled once it pays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Generic, TypeAlias, TypeVar

from numpy.typing import NDArray

from graphir.runtime.native.background import LOCK, submit
from graphir.runtime.native.probe import failure_reason
from graphir.runtime.program.cost_model import COST

Array: TypeAlias = NDArray[Any]
Kind = TypeVar("Kind")
Code = TypeVar("Code")


class PaidKernels(Generic[Kind, Code]):
    """The kernels of an op by kind, in the form in which they run; None if NumPy is faster.

    With `now`, the first use of a kind compiles its kernel. `numpy_time` has the nanoseconds that
    NumPy has spent on each kind; `why` is the reason if LLVM fails. A subclass has the method that
    compiles a kernel.
    """

    def __init__(self, now: bool) -> None:
        self.now, self.why = now, ""
        self.numpy_time = defaultdict[Kind, float](float)
        self.kernels: dict[Kind, Code | None] = {}

    def compiled(self, kind: Kind) -> Code | None:
        """Return what a run needs, a compiled kernel at least; None where NumPy is faster."""
        raise NotImplementedError

    def kernel(self, kind: Kind) -> Code | None:
        """Return the kernel of a kind; None if there is none yet."""
        if self.why or not (self.now or self.numpy_time[kind] > COST.COMPILE_COST):
            return None
        if kind not in self.kernels and not self.now:
            submit(self.compile, kind)
            return None
        return self.compile(kind)

    def compile(self, kind: Kind) -> Code | None:
        """Return the kernel of a kind, compiled now; None if LLVM fails: `why` has the reason."""
        if kind in self.kernels:
            return self.kernels[kind]
        with LOCK:
            if kind not in self.kernels and not self.why:
                try:
                    self.kernels[kind] = self.compiled(kind)
                except Exception as error:  # any failure of LLVM: NumPy is the fallback
                    self.why = failure_reason(error)
            return self.kernels.get(kind)

    def by_numpy(self, kind: Kind, function: Callable[..., Array], *operands: Any) -> Array:
        """Return the result of a function of NumPy, and charge its time to a kind."""
        start = perf_counter_ns()
        result = function(*operands)
        self.numpy_time[kind] += perf_counter_ns() - start
        return result
