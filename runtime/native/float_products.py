"""Products of large matrices of floats: each matrix, or a part of it, by one thread of BLAS.

For each matrix of a batch, the OpenBLAS of NumPy starts and awaits threads of its own. They poll
for a tenth of a second after that, on processors that the next steps of a program could use. Here
threads of machine code call the function of OpenBLAS that computes a product on one thread
(`driver/level3/level3.c`): `sgemm_nt`, for example, whose letters say if operands are transposed.
It takes a record, ranges of rows and columns, or null, and the addresses of scratch memory for
blocks of both operands. The record starts with the addresses of the operands, of the result, of one
more, and of the factors alpha and beta, the sizes m, n and k, and the distances of columns
(`blas_arg_t` in `common.h`). BLAS thinks in columns, so its first operand is the right one.

A thread has whole matrices. If there are fewer matrices than threads, it has rows of one, or
columns. OpenBLAS adds the terms of an element in blocks. Where its threads work together, it cuts
the last two blocks in other places (`level3_thread.c`) than where one works alone; then each block
is a call, and all calls but the first add to the result.

Parts and blocks may still give other bits than NumPy. So a kind of product starts with a test: if
random matrices of its shapes and strides do not give NumPy's bits, with blocks of any known size,
NumPy computes all products of the kind. The order of additions depends on nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.hints import Array
from graphir.runtime.native.compilation import PaidKernels
from graphir.runtime.native.drivers.records import (
    Relocation,
    WordRecord,
    Words,
    record,
    word,
    word_count,
    words_of_records,
)
from graphir.runtime.native.drivers.thread_pool import (
    OWN,
    SCRATCH,
    Driver,
    Job,
    driver,
    shared_ranges,
)
from graphir.runtime.program.cost_model import COST, PAGE
from graphir.runtime.program.tier import Multiply
from graphir.semantics import matrix_products as products
from graphir.semantics.matrix_products import Layout

Strides: TypeAlias = tuple[int, ...]


@record
class BlasRecord(WordRecord):
    """The record of the driver `products` for a thread: a function of BLAS, and a table of calls.

    The others are the addresses of the scratch memory for blocks of both operands. The record of
    the function follows, `blas_arg_t`.
    """

    fields = "function calls left_blocks right_blocks"


@record
class BlasCall(WordRecord):
    """The first words of `blas_arg_t`, which each call sets: addresses and sizes."""

    fields = "right left result unused alpha beta columns rows terms"


@record
class BlasDistances(WordRecord):
    """The next words of `blas_arg_t`: the distances of columns of the operands and the result."""

    fields = "right left result"


_WORDS = 64
"""The words of a record; those after the distances, which this function does not read, are 0."""

_LEFT_BLOCK = 8 << 20
"""The bytes for a block of the first operand, which has 1.2 MB or less on any processor."""

_TERMS = 1024
"""The terms of a block of the second operand, which has 768 or fewer on any processor."""

_BLOCKS = (768, 640, 512, 448, 384, 352, 320, 256, 192, 128)
"""The terms of blocks that some processors have (`GEMM_DEFAULT_Q` in `param.h`)."""

_UNROLLED = 16
"""The rows or columns that OpenBLAS computes together, or a multiple, on any processor."""

_SPARE = 64
"""The columns of such a block beyond the width of the result, to which a processor rounds it up."""

_LEFT, _RIGHT, _RESULT = 0, 1, 2
"""The numbers of the memories of a job."""

_MATRIX = 2


class FloatProduct(NamedTuple):
    """A kind of product: the shapes and strides of operands of one dtype, and the threads."""

    dtype: np.dtype[Any]
    left: Strides
    right: Strides
    left_strides: Strides
    right_strides: Strides
    threads: int


class FloatProducts(PaidKernels[FloatProduct, Job]):
    """The products of large matrices of floats of a process, as jobs.

    The memories of a job are the operands and the result.
    """

    def product(
        self,
        multiply: Multiply,
        threads: int,
        x: Array,
        y: Array,
        layout: Layout | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return `multiply(x, y, layout, out)`, which is NumPy's product, by some threads.

        Both operands have matrices, and `out` has C order in each matrix.
        """
        left, right = x, y
        if layout:
            function, *strides, is_gram = layout
            if is_gram or function != "matmul":
                return multiply(x, y, layout, out)
            left, right = map(products.laid_out, (x, y), strides)
        if _is_unusual(left, right):
            return multiply(x, y, layout, out)
        shapes = left.shape, right.shape
        kind = FloatProduct(left.dtype, *shapes, left.strides, right.strides, threads)
        if not (job := self.kernel(kind)):
            return self.by_numpy(kind, multiply, x, y, layout, out)
        batch = np.broadcast_shapes(left.shape[:-_MATRIX], right.shape[:-_MATRIX])
        shape = *batch, left.shape[-2], right.shape[-1]
        result = np.empty(shape, left.dtype) if out is None else out
        if not result.flags.c_contiguous:
            return multiply(x, y, layout, out)
        job.run([array.ctypes.data for array in (left, right, result)])
        return result

    def compiled(self, kind: FloatProduct) -> Job | None:
        """Return the job of a kind; None if one thread has other bits than NumPy."""
        if not _job(kind):
            return None
        random = np.random.default_rng(0)
        shapes = kind.left[-_MATRIX:], kind.right[-_MATRIX:]
        strides = kind.left_strides[-_MATRIX:], kind.right_strides[-_MATRIX:]
        x, y = (
            _random(random, kind.dtype, *layout) for layout in zip(shapes, strides, strict=True)
        )
        correct = np.matmul(x, y)
        result, parts = np.empty_like(correct), _parts(kind)
        for blocks in dict.fromkeys(_blocks(shapes[0][-1])):
            test = _job(FloatProduct(kind.dtype, *shapes, *strides, parts), blocks)
            assert test
            test.run([array.ctypes.data for array in (x, y, result)])
            if result.tobytes() == correct.tobytes():
                return _job(kind, blocks)
        return None


@cache
def float_products(now: bool) -> FloatProducts:
    """Return the products of this process."""
    return FloatProducts(now)


def _is_unusual(x: Array, y: Array) -> bool:
    """Whether NumPy copies an operand, calls another function, or raises an error."""
    first, second = x[(0,) * (x.ndim - _MATRIX)], y[(0,) * (y.ndim - _MATRIX)]
    is_gram = products.may_be_gram(first, second) and np.may_share_memory(x, y)
    return is_gram or x.dtype != y.dtype or not (x.flags.aligned and y.flags.aligned)


def _random(
    random: np.random.Generator, dtype: np.dtype[Any], shape: Strides, strides: Strides
) -> Array:
    """Return random numbers in memory with some strides in bytes."""
    numbers = random.normal(size=shape).astype(dtype)
    return products.laid_out(numbers, tuple([stride // dtype.itemsize for stride in strides]))


def _blocks(terms: int) -> Iterator[tuple[int, ...]]:
    """Yield the blocks of terms that a product may have: one call, or those of several threads."""
    yield (terms,)
    for block in _BLOCKS:
        count = max(0, terms // block - 1)
        rest = terms - count * block
        if rest > block:
            yield (*[block] * count, (rest + 1) // 2, rest // 2)


def _parts(kind: FloatProduct) -> int:
    """Return the number of parts of each matrix."""
    matrices = math.prod(np.broadcast_shapes(kind.left[:-_MATRIX], kind.right[:-_MATRIX]))
    return -(-kind.threads // matrices)


def _cut(rows: int, columns: int, parts: int) -> tuple[int, int]:
    """Return the most rows and columns of a part of a matrix.

    A thread reads all columns of the right operand, or all rows of the left one: the smaller one.
    """
    if COST.PANEL_ROWS * rows >= columns:
        return _UNROLLED * -(-rows // (_UNROLLED * parts)), columns
    return rows, _UNROLLED * -(-columns // (_UNROLLED * parts))


def _job(kind: FloatProduct, blocks: tuple[int, ...] = ()) -> Job | None:
    """Return the calls of a product, with one for each block of terms, or with one for all.

    The answer is None if BLAS has no function for its matrices.
    """
    size = kind.dtype.itemsize
    (*_, m, k), n = kind.left, kind.right[-1]
    left = _form(kind.left_strides, (m, k), size)
    right = _form(kind.right_strides, (k, n), size)
    if not (left and right) or min(m, k, n) == 1:
        return None
    letter = "s" if kind.dtype.char == "f" else "d"
    function = products.blas_function(f"{letter}gemm_{right[0]}{left[0]}")
    if not function:
        return None
    batch = np.broadcast_shapes(kind.left[:-_MATRIX], kind.right[:-_MATRIX])
    of_left = _offsets(kind.left, kind.left_strides, batch)
    of_right = _offsets(kind.right, kind.right_strides, batch)
    factors = np.array([1, 0, 1], kind.dtype)
    alpha, none, unit = [factors.ctypes.data + k * size for k in range(3)]
    (down, along), (right_down, right_along) = kind.left_strides[-2:], kind.right_strides[-2:]
    rows, columns = _cut(m, n, _parts(kind))
    calls: list[BlasCall] = []
    for number, places in enumerate(zip(of_right, of_left, strict=True)):
        for row, column in itertools.product(range(0, m, rows), range(0, n, columns)):
            right_place = places[0] + column * right_along
            left_place = places[1] + row * down
            place, term = ((number * m + row) * n + column) * size, 0
            sizes = min(columns, n - column), min(rows, m - row)
            for block in blocks or (k,):
                addresses = right_place + term * right_down, left_place + term * along, place
                beta = unit if term else none
                calls.append(BlasCall(*addresses, 0, alpha, beta, *sizes, block))
                term += block
    distances = BlasDistances(right[1], left[1], n)
    scratch = -(-(_LEFT_BLOCK + _TERMS * (rows + _SPARE) * size) // PAGE) * PAGE
    records, relocations = _records(kind.threads, function, distances, scratch)
    for call in range(len(calls)):
        at = records.size + call * word_count(BlasCall)
        for name, memory in (("right", _RIGHT), ("left", _LEFT), ("result", _RESULT)):
            relocations.append((at + word(BlasCall, name), memory))
    shared = shared_ranges(max(1, len(blocks)), kind.threads - 1)
    words = words_of_records(calls)
    count = len(calls)
    return Job(
        _driver(), records, count, shared, relocations, kind.threads * scratch, words, factors
    )


def _records(
    threads: int, function: int, distances: BlasDistances, scratch: int
) -> tuple[Words, list[Relocation]]:
    """Return the records of threads, each with some bytes of scratch memory.

    The table of calls follows the records.
    """
    records = np.zeros((threads, _WORDS), np.int64)
    relocations: list[Relocation] = []
    for thread, words in enumerate(records):
        blocks = thread * scratch, thread * scratch + _LEFT_BLOCK
        head = BlasRecord(function, 8 * records.size, *blocks)
        own = words_of_records([head, BlasCall(), distances])
        words[: len(own)] = own
        for name, memory in (("calls", OWN), ("left_blocks", SCRATCH), ("right_blocks", SCRATCH)):
            relocations.append((thread * _WORDS + word(BlasRecord, name), memory))
    return records, relocations


def _form(strides: Strides, shape: tuple[int, int], size: int) -> tuple[str, int] | None:
    """Return "n" and the distance of rows, or "t" and that of columns, if elements touch."""
    rows, columns = strides[-2] // size, strides[-1] // size
    if columns == 1 and rows >= shape[1]:
        return "n", rows
    return ("t", columns) if rows == 1 and columns >= shape[0] else None


def _offsets(shape: Strides, strides: Strides, batch: Strides) -> NDArray[np.int64]:
    """Return the bytes from the start of an operand to each of its matrices."""
    offsets = np.zeros(shape[:-_MATRIX], np.int64)
    for axis, places in enumerate(np.indices(offsets.shape)):
        offsets += places * strides[axis]
    return np.broadcast_to(offsets, batch).ravel()


@cache
def _driver() -> Driver:
    return driver("drivers/float_products.ll", "products", BlasRecord, BlasCall)
