"""The interface between the planner and a tier, which runs regions as machine code.

The planner depends on these protocols alone. The package of a tier calls `provide` when it is
imported. Without a tier every region runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from graphir import DType, Symbol
    from graphir.runtime.program.blocks import Range
    from graphir.runtime.program.cutting import Region
    from graphir.runtime.program.program import Program
    from graphir.runtime.program.region_steps import Partition, RegionStep, Taker, Work
    from graphir.runtime.program.rows import ColumnSpace, Tree
    from graphir.runtime.program.steps import PlanRun, ScalarStep

Mode: TypeAlias = Literal["auto", "now", "off"]
"""When the tier compiles regions: "auto" once compilation pays, "now" at once, "off" never."""


Multiply: TypeAlias = Callable[..., Any]
"""A product of batches of matrices: see `graphir.semantics.matrix_products.matmul`."""


class RegionTask(Protocol):
    """One call of a compiled region."""

    @property
    def has_threads(self) -> bool:
        """Whether one call of `work` computes all ranges, after `cut`, on threads of the tier."""
        ...

    def cut(self, run: PlanRun, threads: int) -> Partition:
        """Return the ranges of the iteration space for the threads, and the summation trees."""
        ...

    def work(self, outs: Sequence[Any], partition: Partition, takers: Sequence[Taker]) -> Work:
        """Return the function by which a thread computes ranges and stores them into `outs`."""
        ...


class PlacedRegion(Protocol):
    """A kernel of a region, its record without addresses, and the cells of the record's operands.

    `arrays` are the first operands, the inputs, in the form that the kernel reads.
    """

    @property
    def record(self) -> Sequence[int]: ...  # noqa: D102
    @property
    def cells(self) -> Sequence[int]: ...  # noqa: D102
    @property
    def arrays(self) -> Sequence[Any]: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102


class RowOperand(NamedTuple):
    """An operand of a kernel that runs on blocks of rows: its place in the record, its memory.

    `memory` is the number of the memory, and `offset` the bytes before the operand's row 0 there.
    If the memory has the rows of one block alone, `row` is the number of bytes of its rows, and row
    0 is that of the block; else `row` is 0.
    """

    place: int
    memory: int
    offset: int = 0
    row: int = 0


class RowKernel(NamedTuple):
    """A kernel that runs on blocks of rows together with others.

    `each` is the number of elements of a row. Without `kernel`, rows are copied: the record has the
    addresses of the target and the source, the bytes of their rows, and the number of pieces of a
    row, each with its place in the target and in the source and its bytes; 0 pieces are all bytes.

    For a block `a` to `b` of the rows `start` to `stop`, the kernel computes its rows `a + high` to
    `b + high`, but none before `start + low`, `first`, or from `end` on. So it can run ahead of a
    kernel that reads later rows of its result.
    """

    kernel: Any
    record: Sequence[int]
    operands: Sequence[RowOperand]
    each: int
    end: int
    first: int = 0
    low: int = 0
    high: int = 0


class RowMove(NamedTuple):
    """The last `size` bytes of a block of rows, `distance` bytes after the start of a memory.

    The next block reads them again, and so they move to the start of the memory.
    """

    memory: int
    distance: int
    size: int


class RangeCall(NamedTuple):
    """A call of machine code on the elements `first` to `end`.

    `record` is an array of 64-bit words. `alive` are the objects that it refers to by address.
    """

    kernel: Any
    record: Any
    first: int
    end: int
    alive: Any = None


class SharedJob(Protocol):
    """Work that threads share, which takes the addresses of all memories."""

    @property
    def scratch(self) -> int:
        """The bytes of scratch memory of a run."""
        ...

    def run(self, addresses: Sequence[int], /) -> None:
        """Do the work, with memories at some addresses; those in scratch memory do not matter."""
        ...


class RowTable(Protocol):
    """Kernels on blocks of rows, which take the addresses of all memories (see `RowKernel`)."""

    def placed(self, addresses: Sequence[int], /) -> Callable[[int, int], None]:
        """Return the function that runs the kernels on a range of rows, for one thread at a time.

        `addresses` are those of all memories.
        """
        ...

    def job(
        self, inner: Mapping[int, int], scratch: int, rows: int, block: int, threads: int, /
    ) -> SharedJob:
        """Return the kernels on all rows, in ranges of `block` rows, on several threads.

        `inner` has the places of memories in the `scratch` bytes of a thread, by their numbers.
        """
        ...


class ProductOperand(NamedTuple):
    """An operand of a product: its shape, and its strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(array: Any) -> ProductOperand:
        """Return the operand with the layout of an array."""
        strides = [stride // array.itemsize for stride in array.strides]
        return ProductOperand(array.shape, tuple(strides))

    def lies(self, strides: Sequence[int]) -> bool:
        """Whether the elements lie as in an array with some strides, in elements."""
        axes = zip(self.shape, self.strides, strides, strict=True)
        return all(size <= 1 or own == other for size, own, other in axes)


class Product(NamedTuple):
    """NumPy's product (np.matmul) of two arrays of a dtype, as a contiguous array.

    With several `threads`, these share matrices, or parts of them.
    """

    dtype: np.dtype[Any]
    left: ProductOperand
    right: ProductOperand
    threads: int = 1


class ColumnFold(NamedTuple):
    """A reduction of outer axes of a contiguous array: the op's name and dtype, and the space.

    The result is the first operand, and has its first values.
    """

    name: str
    dtype: DType
    space: ColumnSpace


class ColumnStart(NamedTuple):
    """The first value of all elements of a contiguous array, the results of a reduction."""

    dtype: np.dtype[Any]
    size: int
    neutral: Any


class ColumnMean(NamedTuple):
    """The division of the sums in a contiguous array by the number of their `rows`."""

    dtype: np.dtype[Any]
    size: int
    rows: int


class LeafJoin(NamedTuple):
    """The results of `rows` rows of `length` elements, by those of the leaves of each row.

    `name` and `dtype` are those of the reduction. `pairs` are the numbers of leaves to join, one
    pair after another: the first leaf of a pair gets the result, and leaf 0 that of the row. The
    leaves of all rows are the second operand, which is overwritten.
    """

    name: str
    dtype: np.dtype[Any]
    rows: int
    length: int
    pairs: tuple[Range, ...]


class Accumulation(NamedTuple):
    """A cumulative sum or product of a contiguous array along the rows of a space.

    `name` is that of the op. The operands are the array and the result. Threads share the lines.
    """

    name: str
    dtype: np.dtype[Any]
    space: ColumnSpace
    threads: int


class RowSort(NamedTuple):
    """A sort of `rows` contiguous rows of `length` elements, or, if it `finds`, the int64 order.

    If it is `stable`, equal elements keep their order; else NumPy's quicksort decides it.
    The result is the first operand. With several `threads`, these share the rows.
    """

    dtype: np.dtype[Any]
    rows: int
    length: int
    finds: bool
    stable: bool
    threads: int = 1


class ElementMoves(NamedTuple):
    """Moves of elements of `size` bytes: a place in the first operand, and in the second one.

    `places` is a matrix with a row for each element.
    """

    size: int
    places: Any


class LoopRun(NamedTuple):
    """A loop over scalars for operands and results of some shapes.

    `loop` is compiled. The results are the first operands. `length` is the number of rows of a
    `scan`, or 0.
    """

    loop: CompiledLoop
    operands: Sequence[tuple[np.dtype[Any], tuple[int, ...]]]
    results: Sequence[tuple[np.dtype[Any], tuple[int, ...]]]
    carries: int
    length: int


class MemoryPlace(NamedTuple):
    """Where an operand lies: `offset` bytes after the start of an array, by its number.

    The number -1 stands for scratch memory.
    """

    array: int
    offset: int


class SequencePart(NamedTuple):
    """An operation of a sequence, with the places of its operands, or constant arrays.

    A memory of a job that lies in the job's scratch memory has the place None.
    """

    kernel: (
        PlacedRegion
        | Product
        | ColumnFold
        | ColumnStart
        | ColumnMean
        | LeafJoin
        | Accumulation
        | RowSort
        | ElementMoves
        | LoopRun
        | SharedJob
    )
    places: Sequence[Any]


class CompiledRegion(Protocol):
    """One region in the tier: a kernel for each layout of the inputs, compiled once it pays."""

    def spend(self, time: float, /) -> None:
        """Charge nanoseconds that NumPy has spent on the region."""
        ...

    @property
    def worth(self) -> bool:
        """Whether the region has machine code, or has earned it."""
        ...

    def task(self, step: RegionStep, values: Sequence[Any]) -> RegionTask | None:
        """Return a task for the layouts of `values`; None if the region stays in NumPy."""
        ...

    def placed(
        self,
        step: RegionStep | ScalarStep,
        values: Sequence[Any],
        copies: bool = True,
        results: Sequence[Any] = (),
    ) -> PlacedRegion | None:
        """Return the kernel of a region for operands of which the caller sets the addresses.

        `values` have the layouts of all operands. With `copies`, the kernel may read copies of
        small strided operands. The results have C order, unless `results` are arrays of their
        layouts. The answer is None if there is no such kernel.
        """
        ...

    def together(
        self, kernels: Sequence[RowKernel], room: int, moves: Sequence[RowMove] = (), /
    ) -> RowTable:
        """Return kernels that run one after another on blocks of `room` rows."""
        ...

    def matrices(self, product: Product, cells: Sequence[int], /) -> PlacedRegion | None:
        """Return a product of a batch as a kernel whose elements are matrices.

        `cells` are those of the operands and the result. The answer is None if there is no such
        kernel, or not yet.
        """
        ...

    def entry(
        self,
        step: RegionStep | ScalarStep,
        reads: Sequence[Symbol],
        writes: Sequence[Symbol],
        values: Sequence[Any],
        constants: Container[int],
        empty: Callable[..., Any],
        copies: bool,
    ) -> Callable[..., Any] | None:
        """Return a function that maps arrays of `reads` to arrays of `writes`, or None.

        `constants` are the cells of constants among `values`. `empty` makes the memory of large
        results. With `copies`, the function may copy operands, and is not built in then. The answer
        is None if the tier has not compiled this function yet.
        """
        ...

    def column_fold(
        self, symbol: Symbol, space: ColumnSpace, /
    ) -> Callable[[Any, Any], None] | None:
        """Return the function that reduces the rows of a matrix into an array, row by row.

        The function takes the array and the matrix. `symbol` is the reduction. The answer is None
        if the region has no machine code yet.
        """
        ...

    def columns(
        self,
        step: RegionStep,
        space: ColumnSpace,
        values: Sequence[Any],
        outs: Sequence[Any],
        sums: Sequence[Any],
        threads: int,
        /,
    ) -> bool:
        """Compute all rows and reduce them into `sums`, on some threads.

        `sums` are matrices with a row for each leading element of the space, one for each row-wise
        symbol, and their elements have their first values. The answer is false, and nothing is
        done, if there is no kernel for these operands yet, or if threads could not share the rows.
        """
        ...

    def column_job(
        self, step: RegionStep, space: ColumnSpace, values: Sequence[Any], /
    ) -> tuple[SharedJob, Sequence[int]] | None:
        """Return the computation and reduction of all rows, and the cells of its memories.

        Values that are None have C order, as results have. The results of reductions have their
        first values. The answer is None if there is no kernel for these operands yet.
        """
        ...

    def cut(self, step: RegionStep, threads: int, /) -> Partition:
        """Return the ranges of elements for threads, and the summation trees of long rows."""
        ...

    def leaf_job(
        self, step: RegionStep, values: Sequence[Any], /
    ) -> tuple[SharedJob, Sequence[int], Sequence[Tree]] | None:
        """Return the reductions of parts of long rows, by several threads.

        The memories are those of the cells, and then the results of all leaves for each reduction.
        The last sequence has the tree of each row. The answer is None if no row is cut for threads,
        or if there is no kernel for these operands yet.
        """
        ...

    def threads(self, step: RegionStep | ScalarStep) -> int:
        """Return the number of threads that the work of a step justifies."""
        ...

    def shared(self, step: RegionStep | ScalarStep, least: float | None = None) -> Any:
        """Return how threads share a step in machine code.

        The answer is None for work of at most `least` nanoseconds, and if threads would have to add
        up parts of rows.
        """
        ...

    def price(self, step: RegionStep | ScalarStep, /) -> float:
        """Return the estimated time of a step in machine code, in nanoseconds."""
        ...

    def status(self, step: Any, values: Sequence[Any]) -> str:
        """Return, as text, the tier that runs the region for the layouts of `values`.

        If NumPy runs the region, the text has the reason. Without a bound step the answer covers
        all layouts.
        """
        ...

    def listing(
        self, step: RegionStep | ScalarStep | None, values: Sequence[Any]
    ) -> tuple[str, str] | None:
        """Return the kernel as LLVM IR and as assembly; None if the tier cannot compile it."""
        ...


class CompiledLoop(Protocol):
    """A loop over scalars in the tier, compiled once it pays."""

    def spend(self, time: float, /) -> None:
        """Charge nanoseconds that Python has spent on the loop."""
        ...

    @property
    def why(self) -> str:
        """The reason if the loop cannot be compiled, else ""."""
        ...

    @property
    def is_compiled(self) -> bool:
        """Whether there is machine code; a loop that has earned it is compiled soon."""
        ...

    @property
    def code(self) -> Any:
        """The machine code of a compiled loop."""
        ...

    @property
    def status(self) -> str:
        """What runs the loop, as text, with the reason if that is Python."""
        ...

    def run(self, operands: Sequence[Any], length: int | None, /) -> list[Any] | None:
        """Return the results for operands; `length` is the number of rows of a `scan`.

        The answer is None if an op refuses its operands; Python then raises the error.
        """
        ...


class Tier(Protocol):
    """A compiler of regions."""

    def __call__(
        self,
        region: Region,
        materialized: Collection[int],
        on_eviction: Callable[[], Callable[[], None] | None],
        shared: dict[Any, Any],
        /,
    ) -> CompiledRegion:
        """Return a region as a compiled region.

        The regions of a program share what they keep in `shared`.

        `materialized` are the indices of symbols whose values lie in memory. `on_eviction` is a
        weak reference to the function that the tier calls when it evicts a kernel of the region.
        """
        ...

    def loop(self, symbol: Symbol, program: Program, /) -> CompiledLoop:
        """Return an op of control flow of a program as a loop over scalars."""
        ...

    def product(
        self, multiply: Callable[[Any, Any], Any], dtype: np.dtype[Any], threads: int, /
    ) -> Callable[[Any, Any], Any]:
        """Return the product of matrices of integers by machine code, on at most some threads.

        The product converts its operands to `dtype`. It calls `multiply`, which does the same, as
        long as there is no machine code, and where that is faster. No operand may be empty.
        """
        ...

    def float_product(self, multiply: Multiply, threads: int, /) -> Multiply:
        """Return the product of large matrices of floats, each matrix, or a part, by a thread.

        It calls `multiply`, which does the same, as long as it does not pay, and where parts have
        other bits.
        """
        ...

    def search(
        self, search: Callable[[Any, Any], Any], side: str, threads: int, /
    ) -> Callable[[Any, Any], Any]:
        """Return the search for values in a sorted vector by machine code, as int64.

        It calls `search`, which does the same, as long as there is no machine code, and where that
        is faster.
        """
        ...

    def pays(self, time: float, /) -> bool:
        """Whether a plan is worth machine code after some nanoseconds in NumPy."""
        ...

    def sequence(
        self,
        parts: Sequence[SequencePart],
        arrays: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
        inputs: int,
        scratch: int,
        apart: Sequence[tuple[int, int]],
        long: bool,
        empty: Callable[..., Any],
        /,
    ) -> Callable[..., Any] | None:
        """Return a built-in function that runs operations in order.

        `arrays` are the dtypes and shapes of the inputs and then of the results, `inputs` is the
        number of inputs, and `scratch` the bytes of scratch memory. A `long` call releases the GIL.
        `empty` makes the memory of large results.
        The function returns None for inputs that are not plain, contiguous arrays of these types,
        if two inputs of a pair in `apart` lie at one address, and if an op of a loop refuses its
        operands.
        The answer is None if the tier has no such function, or not yet.
        """
        ...

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
        does the same, as long as there is no machine code, and where that is faster.
        """
        ...

    def accumulation(
        self, accumulate: Callable[[Any], Any], what: Accumulation, /
    ) -> Callable[[Any], Any]:
        """Return an accumulation by machine code.

        It calls `accumulate`, which does the same, as long as there is no machine code.
        """
        ...

    def column_job(self, symbol: Symbol, space: ColumnSpace, threads: int, /) -> SharedJob | None:
        """Return a reduction of outer axes of a contiguous array, on at most some threads.

        The memories are the operand and the result, which has its first values. The answer is None
        if there is no machine code, or not yet.
        """
        ...


Choice: TypeAlias = Callable[[Mode], tuple[Tier | None, str]]

_choices: list[Choice] = []


def provide(choice: Choice) -> None:
    """Register a tier by the function that chooses it for a mode (see `tier`)."""
    _choices[:] = [choice]


def tier(mode: Mode) -> tuple[Tier | None, str]:
    """Return the tier for a mode, with an empty reason; or None and the reason for NumPy alone.

    Raises ExecutionError for an unknown mode.
    """
    return _choices[0](mode) if _choices else (None, "there is no such tier")
