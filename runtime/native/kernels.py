"""The kernels of one region: compiled when it has earned them, for each layout of its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import ExecutionError, Symbol
from graphir.lazy import lazy
from runtime.native.background import LOCK, submit
from runtime.native.code import NativeCode, is_sum
from runtime.native.emitters import EMITTERS
from runtime.native.entry import Spec
from runtime.native.layout import Operand, contiguous, laid, operand_of, prepared
from runtime.native.probe import engine, told
from runtime.native.regions import Kernel, Kind, UnsupportedError, Writer
from runtime.native.running import Task
from runtime.program.cutting import Region
from runtime.program.memory import LARGE
from runtime.program.steps import WORTH, shape_of

if TYPE_CHECKING:
    from runtime.program.steps import RegionStep, Run, ScalarStep

Array = NDArray[Any]
Dropped: TypeAlias = "Callable[[], Callable[[], None] | None]"
Operands: TypeAlias = tuple[tuple[int, ...], int, Sequence[Array]]
"""The shape of a region, the axes of its rows, and what it reads."""

EARNED, _EACH = 10e6, 0.5e6
"""Nanoseconds in NumPy after which a kernel is compiled, and for each instruction some more: about
what that takes."""

_ROW = 50
"""Nanoseconds that a row of less than a vector takes, or less."""

_LONG = 10_000
"""Nanoseconds from which on other threads may run Python meanwhile."""


class Kernels:
    """What a region is in machine code: for the kinds of its inputs a kernel, once compiled.

    `why` says why it is not, where it cannot be; `now`: compiled when first needed. `dropped`, a
    weak reference, is to what is called when the program shall hold one no more.
    """

    def __init__(
        self, region: Region, needed: Collection[int], dropped: Dropped, now: bool
    ) -> None:
        self.region, self.needed, self.dropped, self.now = region, needed, dropped, now
        self.why = "" if region.symbols or any(map(is_sum, region.rows)) else "no elementwise op"
        self.spent = 0.0
        self._made: dict[tuple[Kind, ...], Any] = {}

    @lazy
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
                    found = self._made[kinds] = engine().compiled(self._written(kinds), self)
                except UnsupportedError as error:
                    self.why = f"no machine code for {error}"
                except Exception as error:  # whatever LLVM says: NumPy goes on
                    self.why = told(error)
            return found

    def _written(self, kinds: tuple[Kind, ...]) -> Kernel:
        return Writer(self.code, kinds, engine().processor().features).kernel()

    def let_go(self, kernel: Any) -> None:
        """Hold a kernel no more, here and in the program: it is made again if it is called."""
        for kinds in [kinds for kinds, found in self._made.items() if found is kernel]:
            del self._made[kinds]
        self.spent = 0.0
        dropped = self.dropped()
        if dropped is not None:
            dropped()

    @property
    def due(self) -> float:
        """The nanoseconds in NumPy after which a kernel is compiled."""
        return EARNED + _EACH * len(self.code.instructions)

    @property
    def earned(self) -> bool:
        """Whether so much time was spent in NumPy that a kernel would have been worth it."""
        return self.spent > EARNED and self.spent > self.due

    def kernel(self, kinds: tuple[Kind, ...]) -> Any:
        """The kernel if it is there; one that is earned will be."""
        found = self._made.get(kinds)
        if found is not None or self.why:
            return found
        if self.now:
            return self.compiled(kinds)
        if self.earned:
            submit(self.compiled, kinds)
        return None

    # -- questions

    def state(self, operands: Operands | None = None) -> str:
        """Which tier runs the region, for such operands or for any, and why NumPy does."""
        if self.why:
            return f"NumPy: {self.why}"
        kinds = operands and self._kinds(operands)
        if operands and kinds is None:
            return "NumPy: rows of its inputs have no common stride, or are too short"
        known = [*self._made] if kinds is None else [kinds]
        if known and all(one in self._made for one in known):
            return f"native for strides {' and '.join(map(_strides, known))}"
        if self.now or self.earned:
            return f"NumPy: to be compiled{', if such calls take long enough' if kinds else ''}"
        spent = f"{self.spent / 1e6:.1f} of the {self.due / 1e6:.0f} ms spent"
        return f"NumPy: {spent} after which it is compiled"

    def machine_code(self, operands: Operands | None = None) -> tuple[str, str]:
        """LLVM IR and assembly for such operands, or contiguous ones; may raise ExecutionError."""
        kinds = self._kinds(operands) if operands else self._contiguous()
        if kinds is None or self.compiled(kinds) is None:
            raise ExecutionError(f"the region stays in {self.state(operands)}")
        with LOCK:
            return engine().listing(self._written(kinds).text)

    def _kinds(self, operands: Operands) -> tuple[Kind, ...] | None:
        """Those of the kernel that there is, or else of that which would be compiled."""
        shape, axes, arrays = operands
        short = laid(shape, axes, tuple(map(operand_of, arrays)), math.prod(shape))
        if short and short.kinds in self._made:
            return short.kinds
        found, _ = prepared(*operands)
        return found and found.kinds

    def _contiguous(self) -> tuple[Kind, ...]:
        """The kinds of inputs that are whole, or have one element for each row."""
        last, inputs = self.region.shape[-1:], self.code.inputs.values()
        return tuple([int(one.rank > 0 and one.shape[-1:] == last) for one in inputs])

    # -- without Python

    def entry(
        self,
        step: RegionStep | ScalarStep,
        reads: Sequence[Symbol],
        writes: Sequence[Symbol],
        constants: Mapping[int, Array],
    ) -> Callable[..., Any] | None:
        """A built-in function that computes `writes` of `reads`, arrays of the step's shapes.

        None where there is no kernel yet, or threads or old memory would help.
        """
        if self.why or not (self.now or self._made or self.earned):
            return None

        def operand(one: Symbol) -> Operand:
            shape, itemsize = shape_of(one, step.sizes), one.dtype.storage.itemsize
            return shape, contiguous(shape, itemsize), itemsize

        code, inputs = self.code, [*self.code.inputs.values()]
        rows = [symbol for symbol, _ in code.rows]
        large = any(math.prod(shape) * size >= LARGE for shape, _, size in map(operand, writes))
        same = all(one.dtype.storage == code.dtypes[register] for one, register in code.rows)
        sums = same and not code.buffered and len(rows) == len(code.sums)
        if large or not sums or not step.size or self.threads(step) > 1:
            return None
        operands = tuple(map(operand, inputs))
        layout = laid(step.shape, step.axes, operands, short=max(1, int(step.price / _ROW)))
        kernel = self.kernel(layout.kinds) if layout else None
        if kernel is None or layout is None:
            return None
        sizes, by = [[one.dtype.storage.itemsize for one in some] for some in (code.outs, rows)]
        record = layout.record(sizes, by, step.length)
        places = {one: layout.place(i) for i, one in enumerate((*inputs, *code.outs, *rows))}
        for symbol in inputs:
            array = constants.get(step.cells[symbol.index])
            if array is not None and not array.flags.c_contiguous:
                return None
            record[places[symbol]] = 0 if array is None else array.ctypes.data
        specs = [
            Spec(
                one.graph.committed(one.dtype).storage,
                shape_of(one, step.sizes),
                places.get(one, len(record)),
            )
            for one in (*reads, *writes)
        ]
        long = step.size * self.cost > _LONG
        return kernel.entry(specs, len(reads), record, step.size, long)

    # -- running

    def task(self, step: RegionStep, run: Run) -> Task | None:
        """A call of the kernel; None where the region stays in NumPy."""
        if self.why or not step.size:
            return None
        cells = [step.cells[symbol.index] for symbol in self.code.inputs.values()]
        arrays = [np.asarray(run.values[cell]) for cell in cells]
        layout, arrays = prepared(step.shape, step.axes, arrays)
        kernel = self.kernel(layout.kinds) if layout else None
        if kernel is None or layout is None:
            return None
        return Task(self.code, kernel, layout, step, arrays, step.size * self.cost)

    def runs(self, step: RegionStep | ScalarStep) -> bool:
        """Whether there is a kernel for contiguous inputs as `task` prepares them."""
        if self.why or not step.shape or not (self.now or self._made or self.earned):
            return False
        symbols = self.code.inputs.values()
        arrays = [np.empty(shape_of(one, step.sizes), one.dtype.storage) for one in symbols]
        layout, _ = prepared(step.shape, step.axes, arrays)
        return layout is not None and self.kernel(layout.kinds) is not None

    def threads(self, step: RegionStep | ScalarStep) -> int:
        """The threads that a step is worth."""
        return step.threads if step.size * self.cost > WORTH else 1

    @lazy
    def cost(self) -> float:
        """Nanoseconds an element, roughly: what instructions take, and the bytes that they move."""
        code = self.code
        moved = [one.dtype.storage.itemsize for one in (*code.inputs.values(), *code.outs)]
        return 0.01 * sum(moved) + sum(
            0.0025 * code.dtypes[out].itemsize
            if function in EMITTERS
            else 0.5
            if isinstance(function, np.ufunc)
            else 0.04
            for function, _, out, _ in code.instructions
        )


def _strides(kinds: tuple[Kind, ...]) -> str:
    """The kinds of inputs, as text."""
    return f"({', '.join('any' if kind is None else str(kind) for kind in kinds)})"
