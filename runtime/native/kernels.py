"""The kernels of one region: compiled when it has earned them, for each layout of its inputs.

They are called by an entry, or on ranges of its elements by any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from ctypes import c_int64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import Symbol
from graphir.lazy import lazy
from runtime.native.abi.entry import Spec
from runtime.native.background import LOCK, submit
from runtime.native.code import NativeCode, is_mean, is_sum
from runtime.native.emitters import EMITTERS
from runtime.native.layout import Kinds, StrideLayout, laid
from runtime.native.probe import engine, told
from runtime.native.regions import Kernel, ModuleWriter, UnsupportedError
from runtime.program.blocks import Operand, laid_out
from runtime.program.cost_model import (
    COPIED_INPUTS,
    EARNED,
    EARNED_INSTRUCTION,
    NATIVE_BYTE,
    NATIVE_CONVERSION,
    NATIVE_LANE_BYTE,
    NATIVE_LOOP,
    NATIVE_ROW,
    NATIVE_ROW_LOOP,
    RANGE,
    RANGES_PER_THREAD,
    RELEASED_LOCK,
    SECOND_THREAD,
)
from runtime.program.cutting import Region
from runtime.program.memory import Lane
from runtime.program.steps import CHEAP, shape_of

if TYPE_CHECKING:
    from runtime.program.steps import Cut, PlanRun, RegionStep, ScalarStep, Taker, Work

    AnyStep: TypeAlias = RegionStep | ScalarStep

Array = NDArray[Any]
Dropped: TypeAlias = "Callable[[], Callable[[], None] | None]"


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
        self.made: dict[Kinds, Any] = {}

    @lazy
    def code(self) -> NativeCode:
        """The instructions."""
        return NativeCode(self.region, self.needed)

    # -- compiling

    def compiled(self, kinds: Kinds) -> Any:
        """The kernel, compiled now if it is not; None where it cannot be."""
        with LOCK:
            found = self.made.get(kinds)
            if found is None and not self.why:
                try:
                    found = self.made[kinds] = engine().compiled(self._written(kinds), self)
                except UnsupportedError as error:
                    self.why = f"no machine code for {error}"
                except Exception as error:  # whatever LLVM says: NumPy goes on
                    self.why = told(error)
            return found

    def _written(self, kinds: Kinds) -> Kernel:
        return ModuleWriter(self.code, kinds, engine().processor().features).kernel()

    def let_go(self, kernel: Any) -> None:
        """Hold a kernel no more, here and in the program: it is made again if it is called."""
        self.made = {kinds: one for kinds, one in self.made.items() if one is not kernel}
        self.spent = 0.0
        if dropped := self.dropped():
            dropped()

    @property
    def due(self) -> float:
        """The nanoseconds in NumPy after which a kernel is compiled."""
        return EARNED + EARNED_INSTRUCTION * len(self.code.instructions)

    @property
    def earned(self) -> bool:
        """Whether so much time was spent in NumPy that a kernel would have been worth it."""
        return self.spent > EARNED and self.spent > self.due

    @property
    def worth(self) -> bool:
        """Whether there is a kernel, or one is earned."""
        return not self.why and (self.now or bool(self.made) or self.earned)

    def kernel(self, kinds: Kinds) -> Any:
        """The kernel if it is there; one that is earned will be."""
        found = self.made.get(kinds)
        if found is None and self.now:
            return self.compiled(kinds)
        if found is None and self.earned:
            submit(self.compiled, kinds)
        return found

    # -- questions

    def kinds(self, step: AnyStep, values: Sequence[Any]) -> Kinds | None:
        """Those of the inputs of a step; None where no kernel reads them."""
        _, layout = self._read(step, values)
        return layout and layout.kinds

    @property
    def usual(self) -> Kinds:
        """The kinds of inputs that are whole, or have one element for each row."""
        last, inputs = self.region.shape[-1:], self.code.inputs.values()
        return tuple([int(one.rank > 0 and one.shape[-1:] == last) for one in inputs])

    def listing(self, step: AnyStep | None, values: Sequence[Any]) -> tuple[str, str] | None:
        """A kernel as LLVM IR and assembly; None where it cannot be compiled."""
        kinds = self.kinds(step, values) if step else self.usual
        if kinds is None:
            return None
        with LOCK:
            return self.compiled(kinds) and engine().listing(self._written(kinds).text)

    def status(self, step: AnyStep | None, values: Sequence[Any]) -> str:
        """Which tier runs the region for such values, or for any, and why NumPy does."""
        if self.why:
            return f"NumPy: {self.why}"
        kinds = self.kinds(step, values) if step else None
        if step and kinds is None:
            return "NumPy: rows of its inputs have no common stride, or are too short"
        known = [*self.made] if kinds is None else [kinds]
        if known and all(one in self.made for one in known):
            return f"native for strides {' and '.join(map(_strides, known))}"
        if self.now or self.earned:
            return f"NumPy: to be compiled{', if such calls take long enough' if kinds else ''}"
        spent = f"{self.spent / 1e6:.1f} of the {self.due / 1e6:.0f} ms spent"
        return f"NumPy: {spent} after which it is compiled"

    # -- running

    def entry(
        self,
        step: AnyStep,
        reads: Sequence[Symbol],
        writes: Sequence[Symbol],
        values: Sequence[Any],
    ) -> Callable[..., Any] | None:
        """A built-in function that computes `writes` of `reads`, arrays of the step's shapes.

        None where there is no kernel yet, or threads would help. `values` are those of cells that
        are constant, which must live as long as the function.
        """
        if not (self.worth and step.size and self.code.alone) or self.threads(step) > 1:
            return None
        arrays, layout = self._read(step, values)
        if not (layout and not layout.copies and (kernel := self.kernel(layout.kinds))):
            return None
        places = dict.fromkeys(reads, len(layout.record))  # of those that no kernel reads
        places |= {one: i for i, one in enumerate(self.code.places)}
        specs = [
            Spec(
                one.graph.concrete_dtype(one.dtype).storage, shape_of(one, step.sizes), places[one]
            )
            for one in (*reads, *writes)
        ]
        record = [*[one.ctypes.data for one in arrays], *layout.record[len(arrays) :]]
        long = step.size * self.cost > RELEASED_LOCK
        return kernel.entry(specs, len(reads), record, step.size, long)

    def task(self, step: RegionStep, values: Sequence[Any]) -> KernelCall | None:
        """A call of the kernel; None where the region stays in NumPy."""
        if not (self.worth and step.size):
            return None
        arrays, layout = self._read(step, values)
        if not (layout and (kernel := self.kernel(layout.kinds))):
            return None
        return KernelCall(self, kernel, layout.record, step, layout.read(arrays))

    def _read(
        self, step: AnyStep, values: Sequence[Any]
    ) -> tuple[list[Array], StrideLayout | None]:
        """What the region reads, aligned, and its layout; what is not known is contiguous."""
        arrays: list[Array] = []
        for one in self.code.inputs.values():
            value = values[step.cells[one.index]]
            if value is None:
                value = np.empty(shape_of(one, step.sizes), one.dtype.storage)
            array = np.asarray(value)
            arrays.append(array if array.flags.aligned else array.copy())
        operands = tuple([(one.shape, one.strides, one.itemsize) for one in arrays])
        short = max(1, int(min(step.price, COPIED_INPUTS) / self.row))
        return arrays, laid(step.shape, step.axes, operands, self.code.sizes, short)

    def threads(self, step: AnyStep) -> int:
        """The threads that a step is worth."""
        return step.threads if step.size * self.cost > SECOND_THREAD else 1

    @lazy
    def cost(self) -> float:
        """Nanoseconds an element, roughly: what instructions take, and the bytes that they move."""
        code = self.code
        moved = [one.dtype.storage.itemsize for one in (*code.inputs.values(), *code.outs)]
        computed = [_price(one, code.dtypes[out].itemsize) for one, _, out, _ in code.instructions]
        return NATIVE_BYTE * sum(moved) + sum(computed)

    @lazy
    def row(self) -> float:
        """Nanoseconds that a row of less than a vector takes, roughly."""
        loops = [function for function, *_ in self.code.instructions if function not in CHEAP]
        return NATIVE_ROW + NATIVE_ROW_LOOP * len(loops)


@dataclass
class KernelCall:
    """One call of a region: its kernel, the record for it, and the inputs as it reads them."""

    kernels: Kernels
    kernel: Any
    record: Sequence[int]
    step: RegionStep
    arrays: Sequence[Array]

    def cut(self, run: PlanRun, threads: int) -> Cut:
        """The ranges: some for each thread, as one may be slower; the blocks if told of them."""
        step = self.step
        if run.progress or not all(is_sum(rows.symbol) for rows in step.rows):
            return step.ranges, step.trees
        most = min(RANGES_PER_THREAD * threads, int(step.size * self.kernels.cost / RANGE))
        return step.cut(step.size // (1 if threads == 1 else max(threads, most)) + 64)

    def work(self, outs: Sequence[Array], cut: Cut, takers: Sequence[Taker]) -> Work:
        """What is done with each range."""
        (ranges, trees), step, code, kernel = cut, self.step, self.kernels.code, self.kernel
        count = len(ranges) if trees else step.size // step.length
        sums = {one: np.empty(count, code.dtypes[one[0]]) for one in code.sums}
        lies = dict(zip(code.inputs, self.arrays, strict=True))
        lies |= zip([code.bases[one] for one in code.outs.values()], outs, strict=True)
        read: list[tuple[Taker, int, Operand | None]] = []
        for taker, (symbol, register) in zip(takers, code.rows, strict=True):
            if is_sum(symbol):
                taker.expect(sums[register, is_mean(symbol)])
                continue
            array, dtype = lies.get(code.bases[register]), code.dtypes[register]
            found = None if array is None else laid_out(array.view(dtype), step.shape, step.longest)
            read.append((taker, register, found))
        given = [_address(one) for one in (*self.arrays, *outs)]
        summed = [(_address(one), one.itemsize) for one in sums.values()]

        def work(lane: Lane, numbers: Iterator[int]) -> None:
            record = (c_int64 * len(self.record))(*self.record)
            for i in numbers:
                a, b = ranges[i]
                made = {one: np.empty(b - a, code.dtypes[one]) for one in code.buffered}
                leaf = i - a // step.length if trees else 0
                bases = given + [_address(one) - a * one.itemsize for one in made.values()]
                bases += [base + leaf * size for base, size in summed]
                record[: len(bases)] = bases
                kernel.function(record, kernel.context, a, b)
                for taker, register, operand in read:
                    taker.take(i, a, b, operand.block(a, b) if operand else made[register])

        return work


def _address(array: Array) -> int:
    return array.ctypes.data


def _price(function: Any, size: int) -> float:
    """Nanoseconds that a function takes for an element of so many bytes."""
    if function in EMITTERS:
        return NATIVE_LANE_BYTE * size
    return NATIVE_LOOP if isinstance(function, np.ufunc) else NATIVE_CONVERSION


def _strides(kinds: Kinds) -> str:
    """The kinds of inputs, as text."""
    return f"({', '.join('any' if kind is None else str(kind) for kind in kinds)})"
