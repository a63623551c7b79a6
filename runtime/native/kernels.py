"""The kernels of one region: one for each stride signature of the inputs, compiled once it pays.

A region earns a kernel when NumPy has spent as much time on the region as the compilation takes.
An entry calls a kernel on all elements; threads call a kernel on ranges of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphir.decorators import lazy
from graphir.hints import Array
from graphir.public import Symbol
from graphir.runtime.native.abi import ArraySpec, EntryCall
from graphir.runtime.native.column_reductions import (
    ColumnKinds,
    ColumnWriter,
    columns_together,
    kinds_of,
    records_of,
    steps_of,
    tile_job,
    tiles_of,
)
from graphir.runtime.native.compilation import LOCK, UnusableError, failure_reason, submit
from graphir.runtime.native.drivers.records import NOT_SHARED, SharedRanges
from graphir.runtime.native.drivers.row_phases import PhaseTable, PlacedKernel
from graphir.runtime.native.drivers.thread_pool import Job, shared_ranges
from graphir.runtime.native.emitters import EMITTERS
from graphir.runtime.native.functions import INLINE
from graphir.runtime.native.instruction_selection import NativeCode, is_reduced, structure
from graphir.runtime.native.probe import engine, extensions, features
from graphir.runtime.native.region_calls import KernelCall, address_of, job_of_leaves
from graphir.runtime.native.region_writer import (
    Kernel,
    Kind,
    ModuleWriter,
    ShortAxis,
    UnsupportedError,
    rows_side_by_side,
    segments_of,
)
from graphir.runtime.native.stride_layouts import Kinds, StrideLayout, stride_layout
from graphir.runtime.native.stride_layouts import Operand as StridedOperand
from graphir.runtime.program.blocks import aligned
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Region
from graphir.runtime.program.memory import lookup
from graphir.runtime.program.region_steps import ANY_LAYOUT, CHEAP, RegionStep
from graphir.runtime.program.rows import ColumnSpace, Tree
from graphir.runtime.program.tier import CompileBudget, Product, SequencePart, compile_cost
from graphir.runtime.workers import IMPORTS

if TYPE_CHECKING:
    from graphir.runtime.program.region_steps import Partition
    from graphir.runtime.program.steps import ScalarStep

    AnyStep: TypeAlias = RegionStep | ScalarStep


class _Shared:
    """What regions of equal code share: kernels, the time in NumPy, and why there is no kernel."""

    def __init__(self, why: str) -> None:
        self.why, self.budget = why, CompileBudget()
        self.kernels: dict[Kinds | ColumnKinds, Any] = {}


class Kernels:
    """A region in machine code: its compiled kernels, by the stride signature of the inputs.

    With `now`, the first use of a kernel compiles it. Regions of equal code share their kernels and
    the time that NumPy has spent on them, in `shared`: the iterations of a loop are such regions.
    """

    def __init__(
        self,
        region: Region,
        materialized: Collection[int],
        shared: dict[Any, Any],
        now: bool,
    ) -> None:
        self.region, self.materialized, self.now = region, materialized, now
        why = "" if region.symbols or any(map(is_reduced, region.rows)) else "no elementwise op"
        self.jobs: dict[Any, Job] = {}
        self._shared: _Shared = shared.setdefault(structure(region, materialized), _Shared(why))

    @property
    def why(self) -> str:
        """The reason if the region cannot be compiled, else ""."""
        return self._shared.why

    def charge(self, time: float) -> None:
        """Charge nanoseconds that NumPy has spent on the region."""
        self._shared.budget.charge(time)

    @property
    def compiled_kernels(self) -> dict[Kinds | ColumnKinds, Any]:
        """The compiled kernels by stride signature."""
        return self._shared.kernels

    @lazy
    def code(self) -> NativeCode:
        """The instructions of the region."""
        return NativeCode(self.region, self.materialized)

    # -- compiling

    def compiled(self, kinds: Kinds | ColumnKinds) -> Any:
        """Return the kernel for a stride signature, and compile it if necessary.

        The answer is None if the region cannot be compiled; `why` then has the reason.
        """
        with LOCK:
            kernel = self.compiled_kernels.get(kinds)
            if kernel is None and not self.why:
                try:
                    kernel = engine().compile_kernel(self._write_kernel(kinds))
                    self.compiled_kernels[kinds] = kernel
                except UnsupportedError as error:
                    self._shared.why = f"no machine code for {error}"
                except Exception as error:  # any failure of LLVM: NumPy is the fallback
                    self._shared.why = failure_reason(error)
            return kernel

    def _write_kernel(self, kinds: Kinds | ColumnKinds) -> Kernel:
        if isinstance(kinds, ColumnKinds):
            return ColumnWriter(self.code, kinds, self._extensions).kernel()
        return ModuleWriter(self.code, kinds, self._extensions).kernel()

    @property
    def _extensions(self) -> Collection[str]:
        return extensions(self.code.calls)

    @property
    def _is_earned(self) -> bool:
        """Whether NumPy has spent more time on the region than a compilation takes."""
        return self._shared.budget.covers(lambda: len(self.code.instructions))

    @property
    def pays(self) -> bool:
        """Whether the region has a kernel, or has earned a kernel."""
        return not self.why and (self.now or bool(self.compiled_kernels) or self._is_earned)

    def kernel(self, kinds: Kinds | ColumnKinds) -> Any:
        """Return the kernel for a stride signature; None if it is not compiled yet.

        An earned kernel is submitted to the background thread, so that a later call finds it.
        """
        compiled = self.compiled_kernels.get(kinds)
        if compiled is None and self.now:
            return self.compiled(kinds)
        if compiled is None and self._is_earned:
            submit(self.compiled, kinds)
        return compiled

    # -- questions

    def kinds(self, step: AnyStep, values: Sequence[Any]) -> Kinds | None:
        """Return the stride signature of a step's inputs; None if no kernel can read them."""
        _, layout = self._read(step, values)
        return layout and layout.kinds

    @property
    def usual(self) -> Kinds:
        """The usual stride signature: each input is contiguous or broadcast on the inner axis."""
        last, inputs = self.region.shape[-1:], self.code.inputs.values()
        return tuple([int(symbol.rank > 0 and symbol.shape[-1:] == last) for symbol in inputs])

    def listing(self, step: AnyStep | None, values: Sequence[Any]) -> tuple[str, str] | None:
        """Return a kernel as LLVM IR and as assembly; None if it cannot be compiled.

        Without a step the kernel is that for the usual stride signature.
        """
        kinds = self.kinds(step, values) if step else self.usual
        if kinds is None:
            return None
        with LOCK:
            return self.compiled(kinds) and engine().listing(self._write_kernel(kinds).text)

    def status(self, step: AnyStep | None, values: Sequence[Any]) -> str:
        """Return, as text, the tier that runs the region for the layouts of `values`.

        If NumPy runs the region, the text has the reason. Without a step the text is about all
        compiled kernels.
        """
        if self.why:
            return f"NumPy: {self.why}"
        kinds = self.kinds(step, values) if step else None
        if step and kinds is None:
            return "NumPy: rows of its inputs have no common stride, or are too short"
        columns = [key for key in self.compiled_kernels if isinstance(key, ColumnKinds)]
        kinds_compiled = columns or ([*self.compiled_kernels] if kinds is None else [kinds])
        if kinds_compiled and all(key in self.compiled_kernels for key in kinds_compiled):
            text = f"native for strides {' and '.join(map(_strides, kinds_compiled))}"
            threads = self.threads(step) if step else 1
            return f"{text}, {threads} threads" if threads > 1 else text
        if self.now or self._is_earned:
            return f"NumPy: to be compiled{', if such calls take long enough' if kinds else ''}"
        spent, cost = self._shared.budget.spent, compile_cost(len(self.code.instructions))
        time_spent = f"{spent / 1e6:.1f} of the {cost / 1e6:.0f} ms spent"
        return f"NumPy: {time_spent} after which it is compiled"

    # -- running

    def entry(
        self,
        step: AnyStep,
        reads: Sequence[Symbol],
        writes: Sequence[Symbol],
        values: Sequence[Any],
        empty: Callable[..., Any],
    ) -> Callable[..., Any] | None:
        """Return a built-in function that maps arrays of `reads` to arrays of `writes`.

        The arrays have the shapes of the step. `values` are the cells with their constants, whose
        memory must live as long as the function, and with arrays of the strides of views. `empty`
        makes the memory of large results. The answer is None if there is no kernel yet, if the
        kernel would read copies of operands, if threads would have to add up parts of rows, or if
        NumPy has to compute some rows.
        """
        if not (self.pays and step.size and self.code.alone):
            return None
        shared = self.shared(step)
        if step.threads > 1 and self.price(step) > COST.SECOND_THREAD and not shared:
            return None  # threads that Python starts pay
        arrays, layout = self._read(step, values)
        if not (layout and not layout.copies and (kernel := self.kernel(layout.kinds))):
            return None
        both = zip(self.code.inputs.values(), arrays, strict=True)
        strides = {symbol: x.strides for symbol, x in both if not x.flags.c_contiguous}
        # A read that the kernel does not use goes to the word after the record.
        words = dict.fromkeys(reads, len(layout.record))
        words |= {symbol: i for i, symbol in enumerate(self.code.places)}
        specs = [
            ArraySpec(
                symbol.graph.concrete_dtype(symbol.dtype).storage,
                step.operand_shape(symbol),
                words[symbol],
                strides.get(symbol),
            )
            for symbol in (*reads, *writes)
        ]
        record = [*map(address_of, arrays), *layout.record[len(arrays) :]]
        long = step.size * self.cost > COST.RELEASED_LOCK
        threads = shared or NOT_SHARED
        return kernel.entry(EntryCall(specs, len(reads), record, step.size, long, threads, empty))

    def placed(
        self,
        step: AnyStep,
        values: Sequence[Any],
        copies: bool = True,
        results: Sequence[Array] = (),
    ) -> PlacedKernel | None:
        """Return the kernel of a region for operands of which the caller sets the addresses.

        `values` have the layouts of all operands. With `copies`, small strided operands are copied.
        The results have C order, unless `results` are arrays of their layouts.
        The answer is None if there is no kernel yet, and if the kernel would read further copies or
        leaves rows to NumPy.
        """
        if not (self.pays and self.code.alone and len(self.code.sums) == len(self.code.rows)):
            return None
        outs = tuple([(array.shape, array.strides, array.itemsize) for array in results])
        arrays, layout = self._read(step, values, copies, outs)
        if not (layout and not layout.copies and (kernel := self.kernel(layout.kinds))):
            return None
        cells = [step.cells[symbol.index] for symbol in self.code.places]
        return PlacedKernel(kernel, layout.record, cells, arrays, step.size, self.shared(step))

    together = PhaseTable

    def matrices(self, product: Product, cells: Sequence[int]) -> PlacedKernel | None:
        """Return a product of a batch as a kernel whose elements are matrices.

        `cells` are those of the operands and the result. The answer is None if there is no such
        kernel, or not yet.
        """
        with IMPORTS:
            from graphir.runtime.native.drivers.sequences import are_ready, matrices_kernel

        if not are_ready([SequencePart(product, ())], self.now):
            return None
        kernel, size = matrices_kernel(product)
        return PlacedKernel(kernel, [0] * len(cells), cells, (), size)

    def columns(
        self,
        step: RegionStep,
        space: ColumnSpace,
        values: Sequence[Any],
        outs: Sequence[Array],
        sums: Sequence[Array],
        threads: int,
    ) -> bool:
        """Compute all rows and reduce them into `sums`, on some threads.

        `sums` are matrices with a row for each leading element of the space, one for each row-wise
        symbol, and their elements have their first values. The answer is false, and nothing is
        done, if there is no kernel for these operands yet, or if threads could not share the rows.
        """
        if not self.pays:
            return False
        arrays = [*self._inputs(step, values, copies=True), *outs]
        key = space, threads, tuple([(x.shape, x.strides) for x in arrays])
        bind = partial(self._columns_job, step, space, arrays, sums, threads)
        job = lookup(self.jobs, key, bind, COST.KEPT_PLANS)
        if job:
            job.run([address_of(x) for x in (*arrays, *sums)])
        return job is not None

    def column_job(
        self, step: RegionStep, space: ColumnSpace, values: Sequence[Any]
    ) -> tuple[Job, Sequence[int]] | None:
        """Return the computation and reduction of all rows, and the cells of its memories.

        Values that are None have C order, as results have. The results of reductions have their
        first values. The answer is None if there is no kernel for these operands yet.
        """
        if not self.pays:
            return None
        outs = [np.empty(step.shape, dtype) for _, dtype in step.writes]
        arrays = [*self._inputs(step, values, copies=False), *outs]
        dtypes = [rows.symbol.dtype.storage for rows in step.rows]
        sums = [np.empty((space.lead, space.lanes), dtype) for dtype in dtypes]
        cells = [step.cells[symbol.index] for symbol in self.code.inputs.values()]
        cells += step.results
        job = self._columns_job(step, space, arrays, sums, self.threads(step))
        return job and (job, cells)

    def leaf_job(
        self, step: RegionStep, values: Sequence[Any]
    ) -> tuple[Job, Sequence[int], Sequence[Tree]] | None:
        """Return the reductions of parts of long rows, by several threads.

        The memories are those of the cells, and then the results of all leaves for each reduction.
        The last sequence has the tree of each row. The answer is None if no row is cut for threads,
        or if there is no kernel for these operands yet.
        """
        threads, code = self.threads(step), self.code
        ranges, trees = self.cut(step, threads) if threads > 1 else ((), ())
        if not (self.pays and trees and code.alone and len(code.sums) == len(code.rows)):
            return None
        _, layout = self._read(step, values)
        if not (layout and not layout.copies and (kernel := self.kernel(layout.kinds))):
            return None
        cells = [step.cells[symbol.index] for symbol in (*code.inputs.values(), *code.outs)]
        job = job_of_leaves(kernel, layout.record, len(cells), code.sizes[1], step, ranges, threads)
        return job, cells, trees

    def cut(self, step: RegionStep, threads: int) -> Partition:
        """Return the ranges of elements for threads, and the summation trees of long rows.

        Each thread gets several ranges, so that a slow thread takes fewer of them.
        """
        range_count = min(COST.RANGES_PER_THREAD * threads, int(self.price(step) / COST.RANGE))
        return step.cut(step.size // (1 if threads == 1 else max(threads, range_count)) + 64)

    def _columns_job(
        self,
        step: RegionStep,
        space: ColumnSpace,
        arrays: Sequence[Array],
        sums: Sequence[Array],
        threads: int,
    ) -> Job | None:
        """Return the calls of the kernel for arrays of some strides; None without a kernel."""
        if not self._is_inline:
            return self._columns_together(step, space, arrays, threads)
        steps = [steps_of(x, step.shape, space) for x in arrays]
        kinds = kinds_of(steps, [x.itemsize for x in arrays])
        if kinds is None:
            return None
        cheap = all(function in ANY_LAYOUT for function, *_ in self.code.instructions)
        sizes = [array.itemsize for array in sums]
        tile, ranges = tiles_of(space, threads, sizes, cheap, features())
        names = tuple([rows.symbol.op.name for rows in step.rows])
        key = ColumnKinds(kinds[: len(self.code.inputs)], names, tile)
        if not (kernel := self.kernel(key)):
            return None
        records = records_of(space, [*filter(None, steps)], sums, ranges)
        return tile_job(kernel, records, len(arrays) + len(sums), space, threads)

    def _columns_together(
        self, step: RegionStep, space: ColumnSpace, arrays: Sequence[Array], threads: int
    ) -> Job | None:
        """Return the kernel and the reductions on blocks of rows; None without a kernel."""
        layout = self._layout(step, arrays[: len(self.code.inputs)], copies=True)
        # With fewer leading elements than threads, threads compute blocks, and reduce in turn.
        if not layout or layout.copies or space.lead < threads:
            return None
        if not (kernel := self.kernel(layout.kinds)):
            return None
        placed = PlacedKernel(kernel, layout.record, (), (), step.size)
        return columns_together(placed, self.code, step.shape, space, arrays, threads)

    @lazy
    def _is_inline(self) -> bool:
        """Whether the region calls no inner loop of NumPy."""
        try:
            return not any(segment.loops for segment in segments_of(self.code, self._extensions))
        except UnsupportedError:
            return False

    def task(self, step: RegionStep, values: Sequence[Any]) -> KernelCall | None:
        """Return a call of the kernel for `values`; None if the region stays in NumPy."""
        if not (self.pays and step.size):
            return None
        arrays, layout = self._read(step, values, copies=True)
        if not (layout and (kernel := self.kernel(layout.kinds))):
            return None
        return KernelCall(self, kernel, layout.record, step, layout.read(arrays))

    def _read(
        self,
        step: AnyStep,
        values: Sequence[Any],
        copies: bool = False,
        results: tuple[StridedOperand, ...] = (),
    ) -> tuple[list[Array], StrideLayout | None]:
        """Return the aligned inputs of the region, and their layout, or None for the layout."""
        arrays = self._inputs(step, values, copies)
        return arrays, self._layout(step, arrays, copies, results)

    def _layout(
        self,
        step: AnyStep,
        arrays: Sequence[Array],
        copies: bool,
        results: tuple[StridedOperand, ...] = (),
    ) -> StrideLayout | None:
        """Return the layout of aligned inputs; None if there is none.

        The results have C order, unless `results` are their layouts.
        """
        operands = tuple([(array.shape, array.strides, array.itemsize) for array in arrays])
        price = step.price + (0 if copies else COST.PYTHON_STEP)
        short = max(1, int(min(price, COST.COPIED_INPUTS) / self.row))
        space = step.shape, step.axes, operands, self.code.sizes
        layout = stride_layout(*space, short, results)
        if (not layout or layout.copies) and self._is_inline:  # rows side by side may be short
            short_rows = stride_layout(*space, step.size, results)
            if short_rows and rows_side_by_side(self.code, short_rows.kinds):
                layout = short_rows
        return layout

    def _inputs(self, step: AnyStep, values: Sequence[Any], copies: bool) -> list[Array]:
        """Return the aligned inputs of the region.

        An input without a value yet counts as contiguous. With `copies`, strided inputs that are
        small beside the region are contiguous copies.
        """
        arrays: list[Array] = []
        for symbol in self.code.inputs.values():
            value = values[step.cells[symbol.index]]
            if value is None:
                value = np.empty(step.operand_shape(symbol), symbol.dtype.storage)
            arrays.append(aligned(value, step.size if copies else 0))
        return arrays

    def shared(self, step: AnyStep, least: float | None = None) -> SharedRanges | None:
        """Return how machine code hands out the ranges of a step to threads.

        The answer is None for work of at most `least` nanoseconds, by default NATIVE_SECOND_THREAD,
        and if threads would have to add up parts of rows.
        """
        least = COST.NATIVE_SECOND_THREAD if least is None else least
        threads = step.most_threads if self.price(step) > least else 1
        ranges = int(step.size * self.cost / COST.SHARED_RANGE)
        if threads == 1 or not isinstance(step, RegionStep):
            return None
        blocks, trees = step.cut(step.size // max(threads, ranges) + 64)
        try:
            return None if trees else shared_ranges(blocks[0][1], min(threads, len(blocks)) - 1)
        except UnusableError as error:  # no pool of threads, and no kernel either
            self._shared.why = failure_reason(error)
            return None

    def threads(self, step: AnyStep) -> int:
        """Return the number of threads that the work of a step justifies."""
        return step.most_threads if self.price(step) > COST.NATIVE_SECOND_THREAD else 1

    def price(self, step: AnyStep) -> float:
        """Return the estimated time of a step in machine code, in nanoseconds."""
        return step.size * self.cost

    @lazy
    def cost(self) -> float:
        """The estimated nanoseconds per element, for the instructions and for the bytes moved."""
        code = self.code
        operands = (*code.inputs.values(), *code.outs)
        bytes_moved = sum(symbol.dtype.storage.itemsize for symbol in operands)
        prices = [
            _price(function, code.dtypes[out].itemsize) for function, _, out, _ in code.instructions
        ]
        return COST.NATIVE_BYTE * bytes_moved + sum(prices)

    @lazy
    def row(self) -> float:
        """The estimated nanoseconds per row that is shorter than a vector."""
        loops = [function for function, *_ in self.code.instructions if function not in CHEAP]
        return COST.NATIVE_ROW + COST.NATIVE_ROW_LOOP * len(loops)


def _price(function: Callable[..., Any], size: int) -> float:
    """Return the estimated nanoseconds of a function per element of `size` bytes."""
    if function in EMITTERS and (function, "f") not in INLINE:
        return COST.NATIVE_LANE_BYTE * size
    return COST.NATIVE_LOOP if isinstance(function, np.ufunc) else COST.NATIVE_CONVERSION


def _strides(kinds: Kinds | ColumnKinds) -> str:
    """Return a stride signature as text."""
    if isinstance(kinds, ColumnKinds):
        return f"{_strides(kinds.kinds)} of columns"
    return f"({', '.join(map(_stride, kinds))})"


def _stride(kind: Kind) -> str:
    if isinstance(kind, ShortAxis):
        return f"{kind.size} {'equal' if kind.repeated else 'in turn'}"
    return "any" if kind is None else str(kind)
