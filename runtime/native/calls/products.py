"""Products of integer matrices in machine code, on several threads: see product_code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.calls.paid import PaidKernels
from graphir.runtime.native.calls.product_code import (
    ProductCode,
    ProductTile,
    ProductWriter,
    tile_of,
)
from graphir.runtime.native.probe import engine
from graphir.runtime.native.threads import Job, job_of_calls
from graphir.runtime.program.blocks import Range, Uniform
from graphir.runtime.program.cost_model import COST, KEPT_LAYOUTS, LINE
from graphir.runtime.program.memory import lookup
from graphir.semantics.integer_products import magnitude_of

Array: TypeAlias = NDArray[Any]
Multiply: TypeAlias = Callable[[Array, Array], Array]


class ProductKind(NamedTuple):
    """A kind of product, which has one kernel: see `ProductCode`.

    Elements of `bits` bits are the narrowest with which the product is right.
    """

    bits: int
    right: np.dtype[Any]
    by_columns: bool
    unsigned: bool


class Products(PaidKernels[ProductKind, ProductCode]):
    """The integer products of a process by machine code; None stands for products by BLAS."""

    def __init__(self, now: bool) -> None:
        super().__init__(now)
        self._jobs: dict[Any, Job] = {}

    def product(
        self, multiply: Multiply, dtype: np.dtype[Any], threads: int, x: Array, y: Array
    ) -> Array:
        """Return x @ y for operands of integer dtypes, converted to one integer dtype.

        `multiply` computes the product where there is no machine code. No operand may be empty.
        """
        if x.ndim > y.ndim == 2:  # all matrices by one
            rows = self.product(multiply, dtype, threads, x.reshape(-1, x.shape[-1]), y)
            return rows.reshape(*x.shape[:-1], y.shape[-1])
        kind = product_kind(x, y, dtype)
        if entry := self.kernel(kind):
            return self._run(*entry, x, y, dtype, threads)
        return self.by_numpy(kind, multiply, x, y)

    def _run(
        self, kernel: Any, code: ProductCode, x: Array, y: Array, dtype: np.dtype[Any], threads: int
    ) -> Array:
        """Return x @ y in an integer dtype by a kernel, on at most some threads."""
        left = _left(_signed(x, dtype), code.tile)
        right = _right(_signed(y, dtype), code)
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        result = np.empty((*batch, left.shape[-2], right.shape[-1]), code.tile.accumulator)
        operands, terms = (left, right, result), x.shape[-1]
        key = kernel, terms, threads, *[(each.shape, each.strides) for each in operands]
        bind = partial(_job, kernel, code, operands, terms, threads)
        job = lookup(self._jobs, key, bind, COST.KEPT_PLANS)
        assert job
        kernel.words[0] = 1
        job.run([each.ctypes.data for each in operands])
        whole = np.ascontiguousarray(result[..., : x.shape[-2], : y.shape[-1]])
        return whole.view(dtype) if whole.itemsize == dtype.itemsize else whole.astype(dtype)

    def let_go(self, kernel: Any) -> None:
        """Evict a kernel; the next use of its kind recompiles it."""
        super().let_go(kernel)
        self._jobs.clear()

    def compiled(self, kind: ProductKind) -> tuple[Any, ProductCode] | None:
        """Return the kernel of a kind, and its code; None if BLAS is faster."""
        features = engine().processor().features
        tile = tile_of(kind.bits, features) or tile_of(max(16, kind.bits), features)
        if not tile:
            return None
        code = ProductCode(tile, *kind[1:])
        return engine().compile_kernel(ProductWriter(code).kernel(), self), code


@cache
def products(now: bool) -> Products:
    """Return the products of this process."""
    return Products(now)


def product_kind(x: Array, y: Array, dtype: np.dtype[Any]) -> ProductKind:
    """Return the kind of a product in a dtype."""
    bits = element_bits(x, y, dtype)
    x, y = _signed(x, dtype), _signed(y, dtype)
    by_columns = y.strides[-1] != y.itemsize and _is_by_columns(y) and x.shape[-1] >= _GROUP
    unsigned = bits == _BYTE and x.dtype.kind != "i"
    right = np.dtype(np.uint8) if y.dtype.kind == "b" else y.dtype
    return ProductKind(bits, right, by_columns, unsigned)


def _is_by_columns(y: Array) -> bool:
    return y.strides[-2] == y.itemsize


_BYTE = 8
_GROUP = 4
"""The most steps that an instruction takes at once."""


def element_bits(x: Array, y: Array, dtype: np.dtype[Any]) -> int:
    """Return the fewest bits of elements with which a product of x and y is right in a dtype."""
    is_narrow = all(
        each.itemsize == 1
        or _signed(each, dtype).dtype == np.int16
        or magnitude_of(each, dtype) < 1 << 15
        for each in (x, y)
    )
    if is_narrow and dtype.itemsize > 4:
        is_narrow = magnitude_of(x, dtype) * magnitude_of(y, dtype) * x.shape[-1] < 1 << 31
    if not is_narrow:
        return max(32, 8 * dtype.itemsize)
    return _BYTE if x.itemsize == y.itemsize == 1 else 16


def _signed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers modulo 2**bits as signed integers, if they have as many bits as a dtype."""
    return x.view(f"i{x.itemsize}") if x.itemsize == dtype.itemsize else x


def _job(
    kernel: Any, code: ProductCode, operands: Sequence[Array], terms: int, threads: int
) -> Job:
    """Return the calls of a kernel for the operands of a tile and a result."""
    tile, (left, right, result) = code.tile, operands
    height, width = result.shape[-2:]
    batch, sizes = result.shape[:-2], [each.shape[-2:] for each in operands]
    stacks = [np.broadcast_to(x, (*batch, *n)) for x, n in zip(operands, sizes, strict=True)]
    pitch, apart = left.strides[-2], right.strides[-1 if code.by_columns else -2]
    rows = pitch, 0, result.strides[-2]
    matrices = [*np.ndindex(batch)]
    records: list[list[int]] = []
    ranges: list[Range] = []
    most = COST.RANGE / COST.PRODUCT_TERM
    parts = _parts(tile, len(matrices), left.shape[-2:], width, threads, most)
    for number, (first, last), panels in parts:
        start, end = min(first * tile.rows, height - tile.rows), min(last * tile.rows, height)
        index = matrices[number]
        places = [
            start * row + sum(at * by for at, by in zip(index, stack.strides, strict=False))
            for stack, row in zip(stacks, rows, strict=True)
        ]
        records.append([*places, 0, terms, end - start, width, pitch, apart])
        ranges.append(panels)
    time = result.size * terms * COST.PRODUCT_TERM
    scratch = -(-terms // tile.group) * tile.columns * tile.accumulator.itemsize
    workers = threads if time > COST.NATIVE_SECOND_THREAD else 1
    words = np.array(records, np.int64)
    return job_of_calls(kernel, words, len(operands), ranges, workers, scratch, _SCRATCH)


_SCRATCH = 3
"""The word of a record that has the address of scratch memory."""


def _left(x: Array, tile: ProductTile) -> Array:
    """Return the left operand as elements of a tile, with at least the rows of a tile.

    Rows end with zeros up to a multiple of the steps that an instruction takes; those of bytes up
    to a multiple of a vector.
    """
    m, n = x.shape[-2:]
    unit = LINE if tile.bits == _BYTE else tile.group
    shape = max(m, tile.rows), -(-n // unit) * unit
    dtype = np.dtype(f"i{tile.bits // 8}")
    if x.dtype.kind == "b":
        x = x.view(np.uint8)
    if x.itemsize == dtype.itemsize:
        x = x.view(dtype)
    if shape == (m, n):
        return np.ascontiguousarray(x.astype(dtype, copy=False))
    padded = np.empty((*x.shape[:-2], *shape), dtype)
    padded[..., :m, :n] = x
    padded[..., :m, n:] = 0
    padded[..., m:, :] = 0
    return padded


def _right(y: Array, code: ProductCode) -> Array:
    """Return the right operand with contiguous rows or columns, and the columns of a panel."""
    k, n = y.shape[-2:]
    columns = code.tile.columns
    is_read = _is_by_columns(y) if code.by_columns else y.strides[-1] == y.itemsize
    if n >= columns and is_read:
        return y
    if code.by_columns:
        padded = np.zeros((*y.shape[:-2], max(n, columns), k), y.dtype).swapaxes(-1, -2)
    else:
        padded = np.zeros((*y.shape[:-2], k, max(n, columns)), y.dtype)
    padded[..., :n] = y
    return padded


Part: TypeAlias = tuple[int, Range, Range]


@lru_cache(KEPT_LAYOUTS)
def _parts(
    tile: ProductTile, matrices: int, left: tuple[int, ...], width: int, threads: int, most: float
) -> list[Part]:
    """Return the parts of the work: a matrix, a range of tiles of rows, and a range of panels.

    A part has about `most` terms.
    """
    panels, tiles = -(-width // tile.columns), -(-left[-2] // tile.rows)
    of_tile = tile.rows * left[-1] * tile.columns  # the terms of a tile
    few = matrices * panels < 2 * threads
    rows = max(1, int(most / (of_tile * panels))) if few else tiles
    columns = panels if few else max(1, int(most / (of_tile * tiles)))
    return [
        (number, rows_, columns_)
        for number in range(matrices)
        for columns_ in Uniform(panels, columns)
        for rows_ in Uniform(tiles, rows)
    ]
