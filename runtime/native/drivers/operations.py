"""The operations of sequences besides kernels: folds and sorts of rows, moves of elements, loops.

An operation is a function with the signature of a kernel, a record with the addresses of its
operands, and a table of 64-bit words. A fold is the kernel of a reduction of outer axes. A sort
calls the sorts of NumPy's dtypes, which np.sort and np.argsort call; a probe compares bits with
theirs before the first use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import addressof, c_void_p
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.hints import Array
from graphir.public import DType
from graphir.runtime.native.abi import sort_of
from graphir.runtime.native.assembly import lane, stored_type
from graphir.runtime.native.column_reductions import column_reductions
from graphir.runtime.native.drivers.records import (
    BACKWARD,
    JobHead,
    WordRecord,
    driver_text,
    record,
    with_numbers,
    word,
    words_of_records,
)
from graphir.runtime.native.drivers.thread_pool import SCRATCH, Job
from graphir.runtime.native.probe import compiled_code, engine
from graphir.runtime.native.row_reductions import Reduction, mean_of, total_of
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import PAGE
from graphir.runtime.program.rows import ColumnSpace
from graphir.runtime.program.tier import (
    ColumnFold,
    ColumnMean,
    ColumnStart,
    ElementMoves,
    LeafJoin,
    LoopRun,
    RowSort,
)

_START = """
define void @start(ptr %record, ptr %values, i64 %first, i64 %bytes) {
  call void @llvm.memcpy.p0.p0.i64(ptr $(get ptr, %record[0]), ptr %values, i64 %bytes, i1 false)
  ret void
}"""
"""The first values of results."""

_MEAN = """
define void @mean(ptr %record, ptr %unused, i64 %rows, i64 %end) {{
entry:
  %sums = get ptr, %record[0]
  %count = sitofp i64 %rows to double
  br label %sum
sum:
  %k = phi i64 [ 0, %entry ], [ %k1, %sum ]
  %at = getelementptr {T}, ptr %sums, i64 %k
  %x = load {T}, ptr %at, align {size}
  store {T} {mean}, ptr %at, align {size}
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %end), label %sum, label %exit
exit:
  ret void
}}"""
"""The division of sums by their number."""

_JOIN = """
define void @join(ptr %record, ptr %pairs, i64 %length, i64 %end) {{
entry:
  %results = get ptr, %record[0]
  %leaves = get ptr, %record[1]
  %count = get i64, %pairs[0]
  %divisor = sitofp i64 %length to double
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %done ]
  %own = getelementptr {T}, ptr %leaves, i64 $(mul i64 %r, $(add i64 %count, 1))
  br label %next
next:
  %k = phi i64 [ 0, %row ], [ %k1, %pair ]
  br i1 $(icmp ult i64 %k, %count), label %pair, label %done
pair:
  %both = getelementptr [2 x i64], ptr %pairs, i64 %k
  %left = getelementptr {T}, ptr %own, i64 $(get i64, %both[1])
  %right = getelementptr {T}, ptr %own, i64 $(get i64, %both[2])
  %x = load {T}, ptr %left, align {size}
  %y = load {T}, ptr %right, align {size}
  store {T} $({join}), ptr %left, align {size}
  %k1 = add i64 %k, 1
  br label %next
done:
  %whole = load {T}, ptr %own, align {size}
  store {T} {total}, ptr $(getelementptr {T}, ptr %results, i64 %r), align {size}
  %r1 = add i64 %r, 1
  br i1 $(icmp ult i64 %r1, %end), label %row, label %exit
exit:
  ret void
}}"""
"""The results of rows, by those of their leaves."""

_SORT = """
define void @sort(ptr %record, ptr %table, i64 %first, i64 %end) {{
entry:
  %results = get ptr, %record[0]
  %source = get ptr, %record[1]
  %function = get ptr, %table[SortTable.function]
  %length = get i64, %table[SortTable.length]
  %places = get i64, %table[SortTable.finds]
  %finds = icmp ne i64 %places, 0
  br label %row
row:
  %r = phi i64 [ %first, %entry ], [ %r1, %next ]
  %at = mul i64 %r, %length
  %x = getelementptr {T}, ptr %source, i64 %at
  br i1 %finds, label %place, label %value
place:
  %k = phi i64 [ 0, %row ], [ %k1, %place ]
  %to = getelementptr i64, ptr %results, i64 %at
  put i64 %k, %to[%k]
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %length), label %place, label %find
find:
  call i32 %function(ptr %x, ptr %to, i64 %length, ptr null)
  br label %next
value:
  %y = getelementptr {T}, ptr %results, i64 %at
  %bytes = mul i64 %length, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 %bytes, i1 false)
  call i32 %function(ptr %y, i64 %length, ptr null)
  br label %next
next:
  %r1 = add i64 %r, 1
  br i1 $(icmp ult i64 %r1, %end), label %row, label %exit
exit:
  ret void
}}"""
"""A sort of rows, or the places that sort them."""

_MOVE = """
define void @move(ptr %record, ptr %table, i64 %first, i64 %end) {{
entry:
  %result = get ptr, %record[0]
  %source = get ptr, %record[1]
  br i1 $(icmp ult i64 %first, %end), label %element, label %exit
element:
  %k = phi i64 [ %first, %entry ], [ %k1, %element ]
  %pair = getelementptr [2 x i64], ptr %table, i64 %k
  %from = getelementptr {T}, ptr %source, i64 $(get i64, %pair[1])
  %to = getelementptr {T}, ptr %result, i64 $(get i64, %pair[0])
  store {T} $(load {T}, ptr %from, align 1), ptr %to, align 1
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %end), label %element, label %exit
exit:
  ret void
}}"""
"""Moves of elements between places in two arrays."""


@record
class SortTable(WordRecord):
    """A sort: the address of NumPy's function, the length of a row, whether it finds places."""

    fields = "function length finds"


class LoopStorage(IntEnum):
    """Where a move of a loop writes or reads: a word of the record, what that points to, a word
    of the state.
    """

    RECORD = 0
    ARRAY = 1
    STATE = 2


@record
class LoopMove(WordRecord):
    """A move of bytes, with the numbers of the words of its target and its source."""

    fields = "target_place target source_place source bytes"


@record
class LoopTable(WordRecord):
    """A loop over scalars, by addresses; the bytes of its state, and the word of its answer.

    The moves follow, first those before the loop.
    """

    fields = "loop context template bytes status_word"


@record
class JobTable(WordRecord):
    """A job in a sequence: the driver `share`, its pool and helpers, and the words of the job.

    `scratch_word` is the word of the record with the address of scratch memory, of which the words
    take the first `words_bytes`. `turn` is 1 if every other run goes backward. The relocations
    follow.
    """

    fields = "share pool helpers scratch_word template turn words_bytes"


@record
class RelocationPair(WordRecord):
    """A word of a job to which a run adds an address; `memory` is a word of the record, or OWN."""

    fields = "word memory"


class JobWords(NamedTuple):
    """The words of a job in a sequence, and the table of its operation."""

    words: NDArray[np.int64]
    table: NDArray[np.int64]


def take_turns(jobs: Sequence[JobWords]) -> None:
    """Let each run of a job go against the run before, of this job or of another one."""
    for number, job in enumerate(jobs):
        job.words[BACKWARD] = number % 2
        job.table[word(JobTable, "turn")] = len(jobs) % 2


class Operation(NamedTuple):
    """A call of a sequence: a function, its record without addresses, and its other arguments.

    `alive` are the objects whose memory the arguments refer to. An operation that needs `scratch`
    bytes of memory has their address after those of its operands.
    """

    function: int
    record: Sequence[int]
    arguments: tuple[int, int, int]
    alive: Sequence[Any]
    scratch: int = 0
    job: JobWords | None = None


def run_operation(operation: Operation, *arrays: Array) -> None:
    """Run an operation whose record is the addresses of some arrays."""
    record = (c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
    engine().FUNCTION(operation.function)(record, *operation.arguments)


# Two threads that ask for code at once may both compile it, and the cache keeps one.


@cache
def start_code() -> Any:
    """Return the code of the first values of results."""
    return compiled_code(_START, "start")


@cache
def mean_code(dtype: Storage) -> Any:
    """Return the code of means."""
    mean = mean_of(Reduction("mean", dtype), "%x", "%count")
    return compiled_code(_MEAN.format(T=lane(dtype), size=dtype.itemsize, mean=mean), "mean")


@cache
def join_code(name: str, dtype: Storage) -> Any:
    """Return the code of the joins of a reduction."""
    reduction = Reduction(name, stored_type(dtype))
    names = {"T": reduction.kind, "size": dtype.itemsize, "join": reduction.join("%x", "%y")}
    total = total_of(reduction, "%whole", "%divisor", 1)
    return compiled_code(_JOIN.format(**names, total=total), "join")


@cache
def _sort_code(dtype: Storage) -> Any:
    """Return the code of sorts of rows."""
    text = _SORT.format(T=lane(dtype), size=dtype.itemsize)
    return compiled_code(with_numbers(text, SortTable), "sort")


@cache
def move_code(size: int) -> Any:
    """Return the code of moves of elements of some bytes."""
    return compiled_code(_MOVE.format(T=f"i{8 * size}"), "move")


@cache
def loop_code() -> Any:
    """Return the code that runs a loop over scalars."""
    text = driver_text("drivers/loop.ll", LoopTable, LoopMove, LoopStorage)
    return compiled_code(text, "run")


@cache
def can_fold(name: str, dtype: DType, lanes: int) -> bool:
    """Whether the code of a fold into some lanes is compiled, now."""
    reduction = column_reductions(name, dtype)
    tile, _ = reduction.tiles(ColumnSpace(1, 1, lanes), 1)
    return reduction.compile(tile) is not None


@cache
def sorts_as_numpy(dtype: Storage) -> bool:
    """Whether sorts of a dtype have the bits of np.sort and np.argsort, and compile the code."""
    random = np.random.default_rng(0)
    for shape in ((1, 1), (3, 2), (5, 17), (2, 100), (1, 700)):
        x = np.ceil(random.normal(size=shape) * 9).astype(dtype)  # with zeros of both signs
        for finds, stable in ((False, False), (True, False), (True, True)):
            kind = "stable" if stable else None
            expected = (np.argsort if finds else np.sort)(x, axis=-1, kind=kind)
            operation = sort_operation(RowSort(dtype, *shape, finds, stable))
            if operation is None:
                return False
            result = np.empty(shape, expected.dtype)
            run_operation(operation, result, x)
            if result.tobytes() != expected.tobytes():
                return False
    return True


def fold_operations(fold: ColumnFold) -> list[Operation]:
    """Return a reduction of outer axes: an operation for each tile, whose kernel is compiled."""
    space = fold.space
    reduction = column_reductions(fold.name, fold.dtype)
    tile, ranges = reduction.tiles(ColumnSpace(1, 1, space.lanes), 1)
    kernel = reduction.compile(tile)
    assert kernel
    arguments = addressof(kernel.context), 0, space.lead * space.rows
    return [
        Operation(kernel.address, [0, 0, *reduction.words(space, *lanes)], arguments, (kernel,))
        for lanes in ranges
    ]


def start_operation(start: ColumnStart) -> Operation:
    """Return the first values of results as an operation."""
    values = np.full(start.size, start.neutral, start.dtype)
    code = start_code()
    arguments = values.ctypes.data, 0, values.nbytes
    return Operation(code.address, (0,), arguments, (code, values))


def mean_operation(mean: ColumnMean) -> Operation:
    """Return the division of sums by their number as an operation."""
    code = mean_code(mean.dtype)
    return Operation(code.address, (0,), (0, mean.rows, mean.size), (code,))


def join_operation(join: LeafJoin) -> Operation:
    """Return the joins of the leaves of rows as an operation."""
    table = np.array([len(join.pairs), *np.ravel(join.pairs)], np.int64)
    code = join_code(join.name, join.dtype)
    arguments = table.ctypes.data, join.length, join.rows
    return Operation(code.address, (0, 0), arguments, (code, table))


def sort_operation(sort: RowSort) -> Operation | None:
    """Return a sort of rows as an operation; None if this NumPy has no such function."""
    function = sort_of(sort.dtype, sort.finds, sort.stable)
    if not function:
        return None
    table = SortTable(function, sort.length, sort.finds)
    code = _sort_code(sort.dtype)
    return Operation(code.address, (0, 0), (addressof(table), 0, sort.rows), (code, table))


def move_operation(moves: ElementMoves) -> Operation:
    """Return moves of elements as an operation."""
    table = np.ascontiguousarray(moves.places, np.int64)
    code = move_code(moves.size)
    return Operation(code.address, (0, 0), (table.ctypes.data, 0, len(table)), (code, table))


@cache
def job_code() -> Any:
    """Return the code that runs a job."""
    texts = {"LAST_IN_PAGE": f"{PAGE - 1}"}
    names = JobTable, JobHead, RelocationPair
    return compiled_code(driver_text("drivers/job.ll", *names, texts=texts), "job")


def job_operation(job: Job) -> Operation:
    """Return a job of threads as an operation.

    The record ends with scratch memory for the words of the job, and after them for its own. It has
    at least PAGE bytes more than the operation needs.
    """
    last = max([0, *(job.numbers + 1)])
    numbers = np.where(job.numbers == SCRATCH, last, job.numbers)
    words, shared = job.words.copy(), job.shared
    size = -(-words.nbytes // PAGE) * PAGE
    address = words.ctypes.data
    head = JobTable(shared.function, shared.pool, shared.helpers, last, address, 0, size)
    pairs = np.stack([job.positions, numbers], axis=1)
    table, code = words_of_records([head, pairs]), job_code()
    arguments, record = (table.ctypes.data, words.nbytes, len(numbers)), [0] * (last + 1)
    own = JobWords(words, table)
    return Operation(code.address, record, arguments, (code, job), size + job.scratch, own)


def loop_operation(run: LoopRun) -> Operation:
    """Return a loop over scalars as an operation.

    The last word of its record is 1 if the loop refuses its operands.
    """
    count = len(run.results)
    template: list[int] = []
    before: list[LoopMove] = []
    after: list[LoopMove] = []
    in_record, in_array, in_state = LoopStorage
    for k, (dtype, shape) in enumerate(run.operands):
        place, source = len(template), count + k
        template += [0, *shape]
        if not shape:
            before.append(LoopMove(in_state, place, in_array, source, dtype.itemsize))
            if k < run.carries:
                after.append(LoopMove(in_array, k, in_state, place, dtype.itemsize))
            continue
        if k < run.carries:
            size = math.prod(shape) * dtype.itemsize
            before.append(LoopMove(in_array, k, in_array, source, size))
            source = k
        before.append(LoopMove(in_state, place, in_record, source, 8))
    for k in range(run.carries, count):
        before.append(LoopMove(in_state, len(template), in_record, k, 8))
        template.append(0)
    state = np.array([*template, run.length], np.int64)
    status = count + len(run.operands)
    loop: Any = run.loop
    address, context = loop.code.address, addressof(loop.context)
    head = LoopTable(address, context, state.ctypes.data, state.nbytes, status)
    table = words_of_records([head, *before, *after])
    code = loop_code()
    arguments = table.ctypes.data, len(before), len(before) + len(after)
    return Operation(code.address, [0] * (status + 1), arguments, (code, loop, state, table))
