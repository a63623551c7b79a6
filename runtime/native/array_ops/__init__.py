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
Entry = TypeVar("Entry")


class PaidKernels(Generic[Kind, Entry]):
    """The kernels of an op by kind, in the form in which they run; None if NumPy is faster.

    With `now`, the first use of a kind compiles its kernel. `numpy_time` has the nanoseconds that
    NumPy has spent on each kind; `why` is the reason if LLVM fails. A subclass has the method that
    compiles a kernel.
    """

    def __init__(self, now: bool) -> None:
        self.now, self.why = now, ""
        self.numpy_time = defaultdict[Kind, float](float)
        self.kernels: dict[Kind, tuple[Any, Entry] | None] = {}

    def compiled(self, kind: Kind) -> tuple[Any, Entry] | None:
        """Return a compiled kernel and what else a run needs; None where NumPy is faster."""
        raise NotImplementedError

    def kernel(self, kind: Kind) -> tuple[Any, Entry] | None:
        """Return the kernel of a kind; None if there is none yet."""
        if self.why or not (self.now or self.numpy_time[kind] > COST.COMPILE_COST):
            return None
        if kind not in self.kernels and self.now:
            self.compile(kind)
        elif kind not in self.kernels:
            submit(self.compile, kind)
        return self.kernels.get(kind)

    def compile(self, kind: Kind) -> None:
        """Compile the kernel of a kind, unless LLVM fails: `why` has the reason."""
        with LOCK:
            if kind in self.kernels or self.why:
                return
            try:
                self.kernels[kind] = self.compiled(kind)
            except Exception as error:  # any failure of LLVM: NumPy is the fallback
                self.why = failure_reason(error)

    def by_numpy(self, kind: Kind, function: Callable[..., Array], *operands: Any) -> Array:
        """Return the result of a function of NumPy, and charge its time to a kind."""
        start = perf_counter_ns()
        result = function(*operands)
        self.numpy_time[kind] += perf_counter_ns() - start
        return result
