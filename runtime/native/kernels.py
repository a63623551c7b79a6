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
from runtime.native.layout import Kinds, StrideLayout, stride_layout
from runtime.native.probe import engine, failure_reason
from runtime.native.regions import Kernel, ModuleWriter, UnsupportedError
from runtime.program.blocks import Operand, laid_out
from runtime.program.cost_model import (
    COMPILE_COST,
    COMPILE_COST_INSTRUCTION,
    COPIED_INPUTS,
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
    from runtime.program.steps import Partition, PlanRun, RegionStep, ScalarStep, Taker, Work

    AnyStep: TypeAlias = RegionStep | ScalarStep

Array = NDArray[Any]
EvictionCallback: TypeAlias = "Callable[[], Callable[[], None] | None]"


class Kernels:
    """What a region is in machine code: for the kinds of its inputs a kernel, once compiled.

    `why` says why it is not, where it cannot be; `now`: compiled when first needed. `dropped`, a
    weak reference, is to what is called when the program shall hold one no more.
    """

    def __init__(
        self,
        region: Region,
        materialized: Collection[int],
        on_eviction: EvictionCallback,
        now: bool,
    ) -> None:
        self.region, self.materialized, self.on_eviction, self.now = (
            region,
            materialized,
            on_eviction,
            now,
        )
        self.why = "" if region.symbols or any(map(is_sum, region.rows)) else "no elementwise op"
        self.numpy_time = 0.0
        self.compiled_kernels: dict[Kinds, Any] = {}

    @lazy
    def code(self) -> NativeCode:
        """The instructions."""
        return NativeCode(self.region, self.materialized)

    # -- compiling

    def compiled(self, kinds: Kinds) -> Any:
        """The kernel, compiled now if it is not; None where it cannot be."""
        with LOCK:
            kernel = self.compiled_kernels.get(kinds)
            if kernel is None and not self.why:
                try:
                    kernel = self.compiled_kernels[kinds] = engine().compile_kernel(
                        self._write_kernel(kinds), self
                    )
                except UnsupportedError as error:
                    self.why = f"no machine code for {error}"
                except Exception as error:  # whatever LLVM says: NumPy goes on
                    self.why = failure_reason(error)
            return kernel

    def _write_kernel(self, kinds: Kinds) -> Kernel:
        return ModuleWriter(self.code, kinds, engine().processor().features).kernel()

    def let_go(self, kernel: Any) -> None:
        """Hold a kernel no more, here and in the program: it is made again if it is called."""
        self.compiled_kernels = {
            kinds: each for kinds, each in self.compiled_kernels.items() if each is not kernel
        }
        self.numpy_time = 0.0
        if callback := self.on_eviction():
            callback()

    @property
    def due(self) -> float:
        """The nanoseconds in NumPy after which a kernel is compiled."""
        return COMPILE_COST + COMPILE_COST_INSTRUCTION * len(self.code.instructions)

    @property
    def earned(self) -> bool:
        """Whether so much time was spent in NumPy that a kernel would have been worth it."""
        return self.numpy_time > COMPILE_COST and self.numpy_time > self.due

    @property
    def worth(self) -> bool:
        """Whether there is a kernel, or one is earned."""
        return not self.why and (self.now or bool(self.compiled_kernels) or self.earned)

    def kernel(self, kinds: Kinds) -> Any:
        """The kernel if it is there; one that is earned will be."""
        compiled = self.compiled_kernels.get(kinds)
        if compiled is None and self.now:
            return self.compiled(kinds)
        if compiled is None and self.earned:
            submit(self.compiled, kinds)
        return compiled

    # -- questions

    def kinds(self, step: AnyStep, values: Sequence[Any]) -> Kinds | None:
        """Those of the inputs of a step; None where no kernel reads them."""
        _, layout = self._read(step, values)
        return layout and layout.kinds

    @property
    def usual(self) -> Kinds:
        """The kinds of inputs that are whole, or have one element for each row."""
        last, inputs = self.region.shape[-1:], self.code.inputs.values()
        return tuple([int(symbol.rank > 0 and symbol.shape[-1:] == last) for symbol in inputs])

    def listing(self, step: AnyStep | None, values: Sequence[Any]) -> tuple[str, str] | None:
        """A kernel as LLVM IR and assembly; None where it cannot be compiled."""
        kinds = self.kinds(step, values) if step else self.usual
        if kinds is None:
            return None
        with LOCK:
            return self.compiled(kinds) and engine().listing(self._write_kernel(kinds).text)

    def status(self, step: AnyStep | None, values: Sequence[Any]) -> str:
        """Which tier runs the region for such values, or for any, and why NumPy does."""
        if self.why:
            return f"NumPy: {self.why}"
        kinds = self.kinds(step, values) if step else None
        if step and kinds is None:
            return "NumPy: rows of its inputs have no common stride, or are too short"
        kinds_compiled = [*self.compiled_kernels] if kinds is None else [kinds]
        if kinds_compiled and all(each in self.compiled_kernels for each in kinds_compiled):
            return f"native for strides {' and '.join(map(_strides, kinds_compiled))}"
        if self.now or self.earned:
            return f"NumPy: to be compiled{', if such calls take long enough' if kinds else ''}"
        time_spent = f"{self.numpy_time / 1e6:.1f} of the {self.due / 1e6:.0f} ms spent"
        return f"NumPy: {time_spent} after which it is compiled"

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
        places |= {symbol: i for i, symbol in enumerate(self.code.places)}
        specs = [
            Spec(
                symbol.graph.concrete_dtype(symbol.dtype).storage,
                shape_of(symbol, step.sizes),
                places[symbol],
            )
            for symbol in (*reads, *writes)
        ]
        record = [*[array.ctypes.data for array in arrays], *layout.record[len(arrays) :]]
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
        for symbol in self.code.inputs.values():
            value = values[step.cells[symbol.index]]
            if value is None:
                value = np.empty(shape_of(symbol, step.sizes), symbol.dtype.storage)
            array = np.asarray(value)
            arrays.append(array if array.flags.aligned else array.copy())
        operands = tuple([(array.shape, array.strides, array.itemsize) for array in arrays])
        short = max(1, int(min(step.price, COPIED_INPUTS) / self.row))
        return arrays, stride_layout(step.shape, step.axes, operands, self.code.sizes, short)

    def threads(self, step: AnyStep) -> int:
        """The threads that a step is worth."""
        return step.threads if step.size * self.cost > SECOND_THREAD else 1

    @lazy
    def cost(self) -> float:
        """Nanoseconds an element, roughly: what instructions take, and the bytes that they move."""
        code = self.code
        bytes_moved = [each.dtype.storage.itemsize for each in (*code.inputs.values(), *code.outs)]
        prices = [_price(each, code.dtypes[out].itemsize) for each, _, out, _ in code.instructions]
        return NATIVE_BYTE * sum(bytes_moved) + sum(prices)

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

    def cut(self, run: PlanRun, threads: int) -> Partition:
        """The ranges: some for each thread, as one may be slower; the blocks if told of them."""
        step = self.step
        if run.progress or not all(is_sum(rows.symbol) for rows in step.rows):
            return step.ranges, step.trees
        most = min(RANGES_PER_THREAD * threads, int(step.size * self.kernels.cost / RANGE))
        return step.cut(step.size // (1 if threads == 1 else max(threads, most)) + 64)

    def work(self, outs: Sequence[Array], partition: Partition, takers: Sequence[Taker]) -> Work:
        """What is done with each range."""
        (ranges, trees), step, code, kernel = partition, self.step, self.kernels.code, self.kernel
        count = len(ranges) if trees else step.size // step.length
        sums = {each: np.empty(count, code.dtypes[each[0]]) for each in code.sums}
        lies = dict(zip(code.inputs, self.arrays, strict=True))
        lies |= zip([code.bases[each] for each in code.outs.values()], outs, strict=True)
        reads: list[tuple[Taker, int, Operand | None]] = []
        for taker, (symbol, register) in zip(takers, code.rows, strict=True):
            if is_sum(symbol):
                taker.expect(sums[register, is_mean(symbol)])
                continue
            array, dtype = lies.get(code.bases[register]), code.dtypes[register]
            operand_laid = (
                None if array is None else laid_out(array.view(dtype), step.shape, step.longest)
            )
            reads.append((taker, register, operand_laid))
        addresses = [_address(each) for each in (*self.arrays, *outs)]
        sum_addresses = [(_address(each), each.itemsize) for each in sums.values()]

        def work(lane: Lane, numbers: Iterator[int]) -> None:
            record = (c_int64 * len(self.record))(*self.record)
            for i in numbers:
                a, b = ranges[i]
                buffers = {each: np.empty(b - a, code.dtypes[each]) for each in code.buffered}
                leaf = i - a // step.length if trees else 0
                bases = addresses + [
                    _address(each) - a * each.itemsize for each in buffers.values()
                ]
                bases += [base + leaf * size for base, size in sum_addresses]
                record[: len(bases)] = bases
                kernel.function(record, kernel.context, a, b)
                for taker, register, operand in reads:
                    taker.take(i, a, b, operand.block(a, b) if operand else buffers[register])

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
