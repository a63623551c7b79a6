"""Sequences: kernels and other operations one after another, in one call of machine code.

A sequence has the signature of a kernel, so that an entry can call it. Its record has the addresses
of inputs and results, and then the records of its operations. Its context is a `SequenceTable`,
which says what to run: moves, which store the addresses of arrays and of scratch memory in the
records of operations, and the operations.

A product is the inner loop of np.matmul, which chooses the routine of BLAS by strides as np.matmul
does. A probe compares bits with np.matmul before the first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ctypes import addressof
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from graphir.runtime.native.abi import ArraySpec, EntryCall, built_in, loop_of
from graphir.runtime.native.accumulations import accumulations, kind_of
from graphir.runtime.native.compilation import LOCK, failure_reason, submit
from graphir.runtime.native.drivers.operations import (
    Operation,
    can_fold,
    fold_operations,
    job_operation,
    join_code,
    join_operation,
    loop_code,
    loop_operation,
    mean_code,
    mean_operation,
    move_code,
    move_operation,
    run_operation,
    sort_operation,
    sorts_as_numpy,
    start_code,
    start_operation,
    take_turns,
)
from graphir.runtime.native.drivers.records import WordRecord, context_of, driver_text, record
from graphir.runtime.native.drivers.row_phases import PlacedKernel
from graphir.runtime.native.drivers.thread_pool import Job, shared_ranges
from graphir.runtime.native.float_products import FloatProduct, float_products
from graphir.runtime.native.probe import compiled_code, engine
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import COST, PAGE
from graphir.runtime.program.tier import (
    Accumulation,
    ColumnFold,
    ColumnMean,
    ColumnStart,
    ElementMoves,
    LeafJoin,
    LoopRun,
    MemoryPlace,
    Product,
    ProductOperand,
    RowSort,
    SequencePart,
)


@record
class SequenceTable(WordRecord):
    """The bytes of scratch memory of a sequence, and its numbers of moves and of operations.

    The moves follow, and then the operations.
    """

    fields = "scratch moves operations"


@record
class AddressMove(WordRecord):
    """An address for a word of the record: bytes after an array, or -1 for scratch memory."""

    fields = "array offset word"


@record
class OperationCall(WordRecord):
    """A call: the address of a function, the first word of its record, and its three arguments."""

    fields = "function record_word x y z"


@record
class MatrixLoop(WordRecord):
    """The inner loop of np.matmul and its data, and its counts; its strides in bytes follow.

    The strides are those from matrix to matrix, and those along the two axes of each array.
    """

    fields = "function data matrices rows terms columns"


class SequenceCode(NamedTuple):
    """A sequence in the form of a kernel that `built_in` takes."""

    address: int
    context: Any
    alive: Sequence[Any]


def are_ready(parts: Sequence[SequencePart], now: bool) -> bool:
    """Whether the code of sequences is compiled, and each part can be an operation.

    With `now` the answer waits for the compiler and the probe of products. Otherwise they run in
    the background, and the answer is False until they are done.
    """
    kernels = [part.kernel for part in parts]
    if any(isinstance(kernel, Product) and _batch(kernel) is None for kernel in kernels):
        return False
    needs = frozenset([None, *map(_need, kernels)])
    if unknown := needs.difference(_ready):
        if now:
            _prepare(unknown)
        else:
            submit(_prepare, unknown)
    return all(map(_ready.get, needs))


class OperationKind(NamedTuple):
    """A kind of operation in a sequence.

    `arguments` are those of `is_usable` for an operation: whether there is code for it, compiled
    now, with NumPy's bits. `operation` returns the operation, or several.
    """

    arguments: Callable[[Any], tuple[Any, ...]]
    is_usable: Callable[..., Any]
    operation: Callable[[Any], Operation | list[Operation]]


Need: TypeAlias = tuple[type[Any], tuple[Any, ...]] | None
_ready: dict[Need, bool] = {}
"""Whether there is code, with NumPy's bits, for each kind of operation; None: for sequences."""


def _need(kernel: Any) -> Need:
    """Return the kind of an operation, with the arguments of its probe."""
    part: type[Any] = kernel.__class__
    kind = OPERATIONS.get(part)
    return (part, kind.arguments(kernel)) if kind else None


def _prepare(needs: Iterable[Need]) -> None:
    """Compile the code of sequences and of kinds of operations, and probe it."""
    try:
        with LOCK:
            usable = engine().call is not None and bool(_driver())
            _ready.update({need: usable and _is_usable(need) for need in (None, *needs)})
    except Exception as error:  # any failure of LLVM: NumPy is the fallback
        failure_reason(error)
        _ready.update(dict.fromkeys((None, *needs), False))


def _is_usable(need: Need) -> bool:
    return need is None or bool(OPERATIONS[need[0]].is_usable(*need[1]))


def sequence_entry(
    parts: Sequence[SequencePart],
    arrays: Sequence[tuple[Storage, tuple[int, ...]]],
    inputs: int,
    scratch: int,
    distinct: Sequence[tuple[int, int]],
    long: bool,
    empty: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a built-in function that runs parts in order (see `NativeTier.sequence`).

    The parts are ready.
    """
    driver = _driver()
    both = [(part, operation) for part in parts for operation in _operations(part.kernel)]
    take_turns([operation.job for _, operation in both if operation.job])
    job_scratch = max([operation.scratch for _, operation in both])
    end, hidden = scratch, 0
    if job_scratch:  # one job after another uses the same memory
        scratch += job_scratch + PAGE
    if scratch > COST.SEQUENCE_SCRATCH:
        hidden, arrays = len(arrays), [*arrays, (np.dtype(np.uint8), (scratch,))]
        scratch = 0
    record, moves, calls = [0] * len(arrays), list[AddressMove](), list[OperationCall]()
    status: int | None = None
    for part, operation in both:
        start = len(record)
        record += operation.record
        places = dict(enumerate(part.places))
        if operation.scratch:
            places[len(operation.record) - 1] = MemoryPlace(-1, end)
        for number, place in places.items():
            if isinstance(place, MemoryPlace):
                array = hidden if place.array < 0 and hidden else place.array
                moves.append(AddressMove(array, place.offset, start + number))
            elif place is not None:
                record[start + number] = place.ctypes.data
        if isinstance(part.kernel, LoopRun):
            status = len(record) - 1
        calls.append(OperationCall(operation.function, start, *operation.arguments))
    head = SequenceTable(scratch, len(moves), len(calls))
    table = context_of([head, *moves, *calls])
    code = SequenceCode(driver.address, table, (driver, both))
    specs = [ArraySpec(dtype, shape, number) for number, (dtype, shape) in enumerate(arrays)]
    call = EntryCall(
        specs,
        inputs,
        record,
        0,
        long,
        allocate=empty,
        distinct=distinct,
        status=status,
        hidden=int(hidden > 0),
    )
    entry_code = engine().call
    return built_in(entry_code.address, code, call, entry_code)


@cache
def _driver() -> Any:
    """Return the compiled code of `sequence`."""
    text = driver_text("drivers/sequence.ll", SequenceTable, AddressMove, OperationCall)
    return compiled_code(text, "sequence")


def _operations(kernel: Any) -> Sequence[Operation]:
    """Return a part of a sequence as operations: one, or one for each tile of a fold."""
    kind = OPERATIONS.get(kernel.__class__)
    operation = kind.operation(kernel) if kind else _operation(kernel)
    return operation if isinstance(operation, list) else [operation]


def _operation(kernel: PlacedKernel | Job) -> Operation:
    """Return a kernel of a region, or a job, as an operation."""
    if isinstance(kernel, Job):
        return job_operation(kernel)
    if kernel.shared:
        words = np.array(kernel.record, np.int64)
        relocations = [(k, k) for k, _ in enumerate(kernel.cells)]
        code, arrays = kernel.compiled, kernel.arrays
        return job_operation(
            Job(code, words, kernel.size, kernel.shared, relocations, alive=arrays)
        )
    context, alive = addressof(kernel.compiled.context), (kernel.compiled, kernel.arrays)
    return Operation(kernel.compiled.address, kernel.record, (context, 0, kernel.size), alive)


def _accumulates(accumulation: Accumulation) -> bool:
    """Whether the kernel of an accumulation is compiled, now."""
    return accumulations(False).compile(kind_of(accumulation)) is not None


def _sort_operation(sort: RowSort) -> Operation:
    """Return a sort of rows; several threads share the rows."""
    operation = sort_operation(sort)
    assert operation
    if sort.threads == 1:
        return operation
    block = -(-sort.rows // (COST.RANGES_PER_THREAD * sort.threads))
    _, table = operation.alive
    kernel = SequenceCode(operation.function, table, operation.alive)
    words, shared = np.zeros(2, np.int64), shared_ranges(block, sort.threads - 1)
    return job_operation(Job(kernel, words, sort.rows, shared, [(0, 0), (1, 1)]))


def matrices_kernel(product: Product) -> tuple[SequenceCode, int]:
    """Return a product of a batch as a kernel whose elements are matrices, and their number."""
    loop, counts, strides = _loop_call(product)
    head = MatrixLoop(loop.function, loop.data, *counts)
    table, code = context_of([head, np.array(strides, np.int64)]), _matrices_code()
    return SequenceCode(code.address, table, (code, table)), counts[0]


@cache
def _matrices_code() -> Any:
    return compiled_code(driver_text("drivers/matrices.ll", MatrixLoop), "matrices")


def _product_operation(product: Product) -> Operation:
    """Return a product as a job of threads, or as a call of the inner loop of np.matmul."""
    job = float_products(False).kernels.get(_kind(product)) if product.threads > 1 else None
    if job:
        return job_operation(job)
    loop, *words = _loop_call(product)
    counts, strides = (np.array(numbers, np.int64) for numbers in words)
    arguments = counts.ctypes.data, strides.ctypes.data, loop.data
    return Operation(loop.function, (0, 0, 0), arguments, (counts, strides))


def _loop_call(product: Product) -> tuple[Any, list[int], list[int]]:
    """Return the inner loop of np.matmul for a product, its counts and its strides.

    The loop takes the counts of matrices, rows, terms and columns, and strides in bytes: those from
    matrix to matrix, and those along the two axes of each array.
    """
    left, right = product.left, product.right
    m, n = (1, *left.shape)[-2:]
    p = 1 if len(right.shape) == 1 else right.shape[-1]
    by_left, by_right = (0, *left.strides)[-2:], (*right.strides[-2:], 0)[:2]
    batch = _batch(product)
    loop = loop_of(np.matmul, *[product.dtype] * 3)
    assert batch and loop
    count, steps = batch
    strides = [step * product.dtype.itemsize for step in (*steps, *by_left, *by_right, p, 1)]
    return loop, [count, m, n, p], strides


def _kind(product: Product) -> FloatProduct:
    """Return the kind of a product that threads share."""
    left, right, size = product.left, product.right, product.dtype.itemsize
    x, y = (tuple([step * size for step in operand.strides]) for operand in (left, right))
    return FloatProduct(product.dtype, left.shape, right.shape, x, y, product.threads)


def _batch(product: Product) -> tuple[int, list[int]] | None:
    """Return the number of matrices, and the strides from matrix to matrix of the three arrays.

    The answer is None if an array has no single such stride.
    """
    leads = [
        (operand.shape[:-2], operand.strides[:-2]) for operand in (product.left, product.right)
    ]
    batch = np.broadcast_shapes(*[shape for shape, _ in leads])
    rows = (1, *product.left.shape)[-2]
    columns = 1 if len(product.right.shape) == 1 else product.right.shape[-1]
    count, steps = 1, [0, 0, 0]
    for axis in range(1, len(batch) + 1):
        if batch[-axis] == 1:
            continue
        along = [
            0 if axis > len(shape) or shape[-axis] == 1 else strides[-axis]
            for shape, strides in leads
        ]
        along.append(count * rows * columns)
        if count > 1 and along != [count * step for step in steps]:
            return None
        steps = along if count == 1 else steps
        count *= batch[-axis]
    return count, steps


def _multiplies(dtype: Storage, shared: Product | None) -> bool:
    """Whether products of a dtype have NumPy's bits, and compile the code of a shared one."""
    if shared:
        float_products(False).compile(_kind(shared))
    return multiplies_as_numpy(dtype)


@cache
def multiplies_as_numpy(dtype: Storage) -> bool:
    """Whether the inner loop of np.matmul has the bits of np.matmul, for a dtype.

    The probe calls the loop on vectors and matrices of odd sizes.
    """
    if loop_of(np.matmul, *[dtype] * 3) is None:
        return False
    random = np.random.default_rng(0)
    return all(_is_numpys(dtype, *shapes, random) for shapes in _PROBED)


_PROBED = (
    *(((17,), (17,)), ((17,), (17, 9)), ((9, 17), (17,)), ((5, 17), (17, 9))),
    *(((1, 33), (33, 40)), ((40, 33), (33, 1)), ((5, 1), (1, 9)), ((3, 5, 17), (17, 9))),
    *(((33, 64), (64, 65)), ((3, 5, 17), (3, 17, 9)), ((5, 17), (3, 17, 9))),
)
"""The shapes of the probed products."""


def _is_numpys(
    dtype: Storage, left: tuple[int, ...], right: tuple[int, ...], random: np.random.Generator
) -> bool:
    x, y = (random.integers(-9, 9, shape).astype(dtype) for shape in (left, right))
    if dtype.kind in "fc":
        x, y = (np.divide(operand, 7).astype(dtype) for operand in (x, y))
    for right_operand in (y, np.asfortranarray(y)):
        expected = np.asarray(np.matmul(x, right_operand))
        product = Product(dtype, ProductOperand.of(x), ProductOperand.of(right_operand))
        result = np.empty_like(expected)
        run_operation(_product_operation(product), x, right_operand, result)
        if result.tobytes() != expected.tobytes():
            return False
    return True


Part = TypeVar("Part")


def _row(
    part: type[Part],
    arguments: Callable[[Part], tuple[Any, ...]],
    is_usable: Callable[..., Any],
    operation: Callable[[Part], Operation | list[Operation]],
) -> tuple[type[Any], OperationKind]:
    """Return a row of OPERATIONS: the type of a part, and the kind of its operation."""
    return part, OperationKind(arguments, is_usable, operation)


OPERATIONS: dict[type[Any], OperationKind] = dict(
    [
        _row(
            Product,
            lambda product: (product.dtype, product if product.threads > 1 else None),
            _multiplies,
            _product_operation,
        ),
        _row(
            ColumnFold,
            lambda fold: (fold.name, fold.dtype, fold.space.lanes),
            can_fold,
            fold_operations,
        ),
        _row(ColumnStart, lambda _: (), start_code, start_operation),
        _row(ColumnMean, lambda mean: (mean.dtype,), mean_code, mean_operation),
        _row(LeafJoin, lambda join: (join.name, join.dtype), join_code, join_operation),
        _row(
            Accumulation,
            lambda accumulation: (accumulation,),
            _accumulates,
            lambda accumulation: job_operation(accumulations(False).job(accumulation)),
        ),
        _row(RowSort, lambda sort: (sort.dtype,), sorts_as_numpy, _sort_operation),
        _row(ElementMoves, lambda moves: (moves.size,), move_code, move_operation),
        _row(LoopRun, lambda _: (), loop_code, loop_operation),
    ]
)
"""The kinds of operations besides kernels and jobs."""
