"""The native tier: regions as machine code, if llvmlite is installed and passes its probe."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from graphir.decorators import lazy
from graphir.public import ExecutionError
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.tier import Accumulation, Mode, Multiply, SequencePart
from graphir.runtime.workers import IMPORTS

if TYPE_CHECKING:
    import numpy as np

    from graphir.public import Symbol
    from graphir.runtime.native.drivers.thread_pool import Job
    from graphir.runtime.native.kernels import Kernels
    from graphir.runtime.native.scalar_loops import ScalarLoop
    from graphir.runtime.program.cutting import Region
    from graphir.runtime.program.program import Program
    from graphir.runtime.program.rows import ColumnSpace


def tier(mode: Mode) -> tuple[NativeTier | None, str]:
    """Return the compiler of regions for a mode; or None and the reason for NumPy alone.

    In the environment, GRAPHIR_NATIVE=0 switches the tier off, and GRAPHIR_NATIVE=1 compiles at
    once. Raises ExecutionError for other values of the mode or of this variable.
    """
    if mode not in ("auto", "now", "off"):
        raise ExecutionError('native is "auto", "now" or "off"', got=f"{mode!r}")
    setting = os.environ.get("GRAPHIR_NATIVE", "")
    if setting not in ("", "0", "1"):
        raise ExecutionError('GRAPHIR_NATIVE in the environment is "0" or "1"', got=f"{setting!r}")
    if mode == "off" or setting == "0":
        return None, 'native="off"' if mode == "off" else "GRAPHIR_NATIVE=0"
    if not is_installed():
        return None, "llvmlite is not installed"
    return NativeTier(mode == "now" or setting == "1"), ""


class NativeTier:
    """The compiler of regions and of ops on whole arrays; with `now` it compiles at first use."""

    def __init__(self, now: bool) -> None:
        self.now = now
        self._column_time = 0.0

    def __call__(
        self,
        region: Region,
        materialized: Collection[int],
        shared: dict[Any, Any],
        /,
    ) -> Kernels:
        """Return a region as a compiled region.

        The regions of a program share what they keep in `shared`.

        `materialized` are the indices of symbols whose values lie in memory.
        """
        kernels = _LazyKernels(region, materialized, shared, self.now)
        return cast("Kernels", kernels)

    def loop(self, symbol: Symbol, program: Program, /) -> ScalarLoop:
        """Return an op of control flow of a program as a loop over scalars."""
        return _module("scalar_loops").ScalarLoop(symbol, program, self.now)

    def product(
        self, multiply: Callable[[Any, Any], Any], dtype: np.dtype[Any], threads: int, /
    ) -> Callable[[Any, Any], Any]:
        """Return the product of matrices of integers by machine code, on at most some threads.

        The product converts its operands to `dtype`. It calls `multiply`, which does the same, as
        long as there is no machine code, and where that is faster. No operand may be empty.
        """
        products = _module("integer_products").products(self.now)
        return functools.partial(products.product, multiply, dtype, threads)

    def float_product(self, multiply: Multiply, threads: int, /) -> Multiply:
        """Return the product of large matrices of floats, each matrix, or a part, by a thread.

        It calls `multiply`, which does the same, as long as it does not pay, and where parts have
        other bits.
        """
        products = _module("float_products").float_products(self.now)
        return functools.partial(products.product, multiply, threads)

    def accumulation(
        self, accumulate: Callable[[Any], Any], accumulation: Accumulation, /
    ) -> Callable[[Any], Any]:
        """Return an accumulation by machine code.

        It calls `accumulate`, which does the same, as long as there is no machine code.
        """
        accumulations = _module("accumulations").accumulations(self.now)
        return functools.partial(accumulations.accumulate, accumulate, accumulation)

    def pays(self, time: float, /) -> bool:
        """Whether a plan is worth machine code after some nanoseconds in NumPy."""
        return self.now or time > COST.COMPILE_COST

    def sequence(
        self,
        parts: Sequence[SequencePart],
        arrays: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
        inputs: int,
        scratch: int,
        distinct: Sequence[tuple[int, int]],
        long: bool,
        empty: Callable[..., Any],
        /,
    ) -> Callable[..., Any] | None:
        """Return a built-in function that runs operations in order.

        `arrays` are the dtypes and shapes of the inputs and then of the results, `inputs` is the
        number of inputs, and `scratch` the bytes of scratch memory. A `long` call releases the GIL.
        `empty` makes the memory of large results.
        The function returns None for inputs that are not plain, contiguous arrays of these types,
        if two inputs of a pair in `distinct` lie at one address, and if an op of a loop refuses its
        operands.
        The answer is None if the tier has no such function, or not yet.
        """
        sequences = _module("drivers.sequences")
        if not sequences.are_ready(parts, self.now):
            return None
        return sequences.sequence_entry(parts, arrays, inputs, scratch, distinct, long, empty)

    def columns(
        self,
        reduce: Callable[[Any], Any],
        symbol: Symbol,
        space: ColumnSpace,
        shape: tuple[int, ...],
        threads: int,
        /,
    ) -> Callable[[Any], Any]:
        """Return a reduction of outer axes by machine code, on at most some threads.

        `space` is that of its operand and `shape` the shape of its result. It calls `reduce`, which
        does the same, as long as there is no machine code, and for arrays that are not contiguous.
        """

        def compute(x: NDArray[Any]) -> Any:
            # Windows, whose elements overlap, come as they lie.
            is_plain = x.flags.c_contiguous and x.flags.aligned
            if is_plain and (job := self.column_job(symbol, space, threads)):
                return _module("column_reductions").reduced(job, symbol, space, shape, x)
            start = perf_counter_ns()
            result = reduce(x)
            self._column_time += perf_counter_ns() - start
            return result

        return compute

    def column_job(self, symbol: Symbol, space: ColumnSpace, threads: int, /) -> Job | None:
        """Return a reduction of outer axes of a contiguous array, on at most some threads.

        The memories are the operand and the result, which has its first values. The answer is None
        if there is no machine code, or not yet.
        """
        if not self.pays(self._column_time):
            return None
        reductions = _module("column_reductions").column_reductions(symbol.op.name, symbol.dtype)
        return reductions.job(space, threads, self.now)


class _LazyKernels:
    """The kernels of a region, whose modules are imported once the program has run for a while.

    Until then the region has no machine code, and the object only adds up the time in NumPy. Any
    attribute besides those below imports the modules.
    """

    def __init__(
        self,
        region: Region,
        materialized: Collection[int],
        shared: dict[Any, Any],
        now: bool,
    ) -> None:
        self._args = region, materialized, shared, now
        self._time = 0.0
        self._program_time: list[float] = shared.setdefault("time", [0.0])
        self._now = now

    @lazy
    def _kernels(self) -> Any:
        return _module("kernels").Kernels(*self._args)

    @property
    def _import_pays(self) -> bool:
        return self._now or self._program_time[0] > COST.IMPORT_COST

    def charge(self, time: float) -> None:
        """Charge nanoseconds that NumPy has spent on the region."""
        self._program_time[0] += time
        self._time += time
        if self._import_pays and self._time:
            self._kernels.charge(self._time)
            self._time = 0.0

    @property
    def pays(self) -> bool:
        """Whether the region has machine code, or has earned it."""
        return self._import_pays and self._kernels.pays

    def task(self, step: Any, values: Sequence[Any]) -> Any:
        """Return a task for the layouts of `values`; None if the region stays in NumPy."""
        return self._kernels.task(step, values) if self._import_pays else None

    def placed(
        self, step: Any, values: Sequence[Any], copies: bool = True, results: Sequence[Any] = ()
    ) -> Any:
        """Return the kernel of a region, without addresses; None if there is none."""
        return self._kernels.placed(step, values, copies, results) if self._import_pays else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernels, name)


def _module(name: str) -> Any:
    """Import a module of this package; a process imports each once a program needs it."""
    with IMPORTS:
        return import_module(f"{__name__}.{name}")


@functools.cache
def is_installed() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None
