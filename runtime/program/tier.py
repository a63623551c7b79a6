"""What the planner hands to machine code: records of operations; and how it finds the tier.

The planner imports no module of the tier's package, `graphir.runtime.native`, but for types;
`tier` imports the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

from graphir.runtime.program.cost_model import COST

if TYPE_CHECKING:
    import numpy as np

    from graphir.public import DType
    from graphir.runtime.native import NativeTier
    from graphir.runtime.native.drivers.row_phases import PlacedKernel
    from graphir.runtime.native.drivers.thread_pool import Job
    from graphir.runtime.native.scalar_loops import ScalarLoop
    from graphir.runtime.program.blocks import Range
    from graphir.runtime.program.rows import ColumnSpace

Mode: TypeAlias = Literal["auto", "now", "off"]
"""When the tier compiles regions: "auto" once compilation pays, "now" at once, "off" never."""


def compile_cost(instructions: int) -> float:
    """Return the estimated nanoseconds of the compilation of so many instructions."""
    return COST.COMPILE_COST + COST.COMPILE_COST_INSTRUCTION * instructions


class CompileBudget:
    """The nanoseconds that NumPy or Python has spent on some code, which earn its compilation."""

    def __init__(self) -> None:
        self.spent = 0.0

    def charge(self, time: float) -> None:
        """Add some nanoseconds."""
        self.spent += time

    def covers(self, instructions: Callable[[], int]) -> bool:
        """Whether the time exceeds that of the compilation of so many instructions.

        The function that counts the instructions, which may take time, is called late.
        """
        return self.spent > COST.COMPILE_COST and self.spent > compile_cost(instructions())


Multiply: TypeAlias = Callable[..., Any]
"""A product of batches of matrices: see `graphir.semantics.matrix_products.matmul`."""


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


class ProductOperand(NamedTuple):
    """An operand of a product: its shape, and its strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(array: NDArray[Any]) -> ProductOperand:
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

    The result is the second operand, and has its first values.
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

    If an order is `stable`, equal elements keep theirs; else NumPy's quicksort decides it.
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

    loop: ScalarLoop
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
        PlacedKernel
        | Product
        | ColumnFold
        | ColumnStart
        | ColumnMean
        | LeafJoin
        | Accumulation
        | RowSort
        | ElementMoves
        | LoopRun
        | Job
    )
    places: Sequence[Any]


def tier(mode: Mode) -> tuple[NativeTier | None, str]:
    """Return the tier for a mode, with an empty reason; or None and the reason for NumPy alone.

    Raises ExecutionError for an unknown mode.
    """
    from graphir.runtime.native import tier as choose

    return choose(mode)
