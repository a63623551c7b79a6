"""The kernels of one region: compiled when it has earned them, for each layout of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from runtime.native.background import LOCK, submit
from runtime.native.code import NativeCode, is_sum
from runtime.native.emitters import EMITTERS
from runtime.native.entry import Spec
from runtime.native.layout import WIDTH, contiguous, laid, prepared
from runtime.native.probe import engine, told
from runtime.native.regions import Kind, UnsupportedError, Writer
from runtime.native.running import Task
from runtime.program.cutting import Region

if TYPE_CHECKING:
    from runtime.program.program import Plan, Program
    from runtime.program.steps import RegionStep, Run

Array = NDArray[Any]
EARNED = 20e6
"""Nanoseconds in NumPy after which a kernel is compiled: about what that takes."""

_WORTH = 150_000
_HELD = 50_000
"""Nanoseconds for which a call may keep other threads from running Python."""


class Kernels:
    """What a region is in machine code: for the kinds of its inputs a kernel, once compiled.

    `why` says why it is not, where it cannot be; `now`: compiled when first needed. `dropped` is
    called when one is to be held no more by the program.
    """

    def __init__(
        self, region: Region, needed: Collection[int], dropped: Callable[[], None], now: bool
    ) -> None:
        self.region, self.needed, self.dropped, self.now = region, needed, dropped, now
        self.why = "" if region.symbols or any(map(is_sum, region.rows)) else "no elementwise op"
        self.spent = 0.0
        self._made: dict[tuple[Kind, ...], Any] = {}

    @cached_property
    def code(self) -> NativeCode:
        """The instructions."""
        return NativeCode(self.region, self.needed)

    # -- compiling

    def compiled(self, kinds: tuple[Kind, ...]) -> Any:
        """The kernel, compiled now if it is not; None where it cannot be."""
        with LOCK:
            found = self._made.get(kinds)
            if found is None and not self.why:
                try:
                    made = Writer(self.code, kinds, WIDTH, engine().features()[1]).kernel()
                    found = self._made[kinds] = engine().compiled(made, self)
                except UnsupportedError as error:
                    self.why = f"no machine code for {error}"
                except Exception as error:  # whatever LLVM says: NumPy goes on
                    self.why = told(error)
            return found

    def let_go(self, kernel: Any) -> None:
        """Hold a kernel no more, here and in the program: it is made again if it is called."""
        for kinds in [kinds for kinds, found in self._made.items() if found is kernel]:
            del self._made[kinds]
        dropped = self.dropped()
        if dropped is not None:
            dropped()

    def kernel(self, kinds: tuple[Kind, ...], cost: float) -> Any:
        """The kernel if it is there; else a call of so many nanoseconds in NumPy counts for it."""
        found = self._made.get(kinds)
        if found is not None or self.why:
            return found
        if self.now:
            return self.compiled(kinds)
        self.spent += cost
        if self.spent > EARNED:
            submit(self.compiled, kinds)
        return None

    # -- without Python

    def entry(self, program: Program, plan: Plan, calls: int) -> Callable[..., Any] | None:
        """A built-in function that does what the program does, for inputs of the plan's shapes."""
        lowered, step, code = program.lowered, plan.bound[0], self.code
        count = step.size
        rows = [symbol for symbol, _ in code.rows]
        same = all(one.dtype.storage == code.dtypes[register] for one, register in code.rows)
        if code.buffered or len(rows) != len(code.sums) or not same or program.rounded:
            return None
        if not count or count * self.cost > _HELD:
            return None
        given = dict(zip(lowered.inputs, plan.inputs, strict=True))
        symbols = list(code.inputs.values())
        constants = [program.constants.get(program.cells[one.index]) for one in symbols]
        shapes = [
            given[one] if array is None else array.shape
            for one, array in zip(symbols, constants, strict=True)
        ]
        sizes = [one.dtype.storage.itemsize for one in symbols]
        strides = [contiguous(own, size) for own, size in zip(shapes, sizes, strict=True)]
        layout = laid(step.shape, step.axes, list(zip(shapes, strides, sizes, strict=True)))
        kernel = self.kernel(layout.kinds, calls * plan.price) if layout else None
        if kernel is None or layout is None:
            return None
        places = {one: layout.place(i) for i, one in enumerate([*symbols, *code.outs, *rows])}
        results = [one.dtype.storage.itemsize for one in code.outs]
        sums = [one.dtype.storage.itemsize for one in rows]
        record = layout.record(results, sums, step.length)
        for one, array in zip(symbols, constants, strict=True):
            record[places[one]] = 0 if array is None else array.ctypes.data
        made = zip(lowered.outputs, plan.shapes, strict=True)
        specs = [
            Spec(lowered.committed(one.dtype).storage, shape, places.get(one, len(record)))
            for one, shape in (*given.items(), *made)
        ]
        return engine().entry(kernel, specs, len(given), record, count, constants)

    # -- running

    def task(self, step: RegionStep, run: Run, outs: Sequence[Array]) -> Task | None:
        """A call of the kernel; None where the region stays in NumPy."""
        if self.why or not step.size:
            return None
        cells = [step.cells[symbol.index] for symbol in self.code.inputs.values()]
        arrays = [np.asarray(run.values[cell]) for cell in cells]
        layout, arrays = prepared(step.shape, step.axes, arrays)
        kernel = self.kernel(layout.kinds, step.price) if layout else None
        return kernel and layout and Task(self.code, kernel, layout, step, arrays, outs)

    def threads(self, step: RegionStep) -> int:
        """The threads that a step is worth."""
        return step.threads if step.size * self.cost > _WORTH else 1

    @cached_property
    def cost(self) -> float:
        """Nanoseconds an element, roughly."""
        return sum(0.02 if one[0] in EMITTERS else 0.5 for one in self.code.instructions)
