"""Products of integer matrices in machine code: tiles of the result in registers, panels in cache.

A kernel computes some panels of columns of a result. It copies a panel of the right operand to
scratch memory, which fits the cache, and then multiplies it by the left operand, a few rows at a
time: each step adds the products of one column of the left and one row of the right operand to
accumulators in registers. 16-bit operands take two such steps at once, in 32-bit lanes, which
x86 processors do in one instruction (pmaddwd, vpdpwssd). All arithmetic wraps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from ctypes import c_int64
from functools import cache
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.semantics.integer_products import magnitude
from runtime.native.background import LOCK, submit
from runtime.native.probe import engine, failure_reason
from runtime.native.regions import Kernel
from runtime.native.vectors import words_of
from runtime.program.blocks import Range, Uniform, share
from runtime.program.cost_model import COMPILE_COST, PRODUCT_TERM, RANGE, SECOND_THREAD
from runtime.program.memory import Lane

Array: TypeAlias = NDArray[Any]
Multiply: TypeAlias = Callable[[Array, Array], Array]

_VECTORS = 2
"""The vectors of a row of a tile of the result."""


class ProductTile(NamedTuple):
    """A tile of the result: `rows` rows of two vectors, of `lanes` accumulators each.

    The elements of the operands have `bits` bits, 16, 32 or 64.
    """

    bits: int
    rows: int
    lanes: int

    @property
    def pair(self) -> int:
        """The number of steps that an instruction takes at once."""
        return 2 if self.bits == 16 else 1

    @property
    def accumulator(self) -> np.dtype[Any]:
        """The dtype of the result."""
        return np.dtype(f"i{max(4, self.bits // 8)}")

    @property
    def columns(self) -> int:
        """The columns of a panel."""
        return _VECTORS * self.lanes


def tile_of(bits: int, features: Collection[str]) -> ProductTile | None:
    """Return the tile for operands of some bits; None where BLAS is faster: kernels, products.

    The accumulators take half of the registers of a processor, or nearly all of few.
    """
    wide = 64 // max(4, bits // 8)
    if {"avx512bw", "avx512dq"} <= {*features}:
        return ProductTile(bits, 8, wide)
    return ProductTile(bits, 4, wide // 2) if "avx2" in features and bits < 64 else None


_START = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  %a = get ptr, %record[0]
  %b = get ptr, %record[1]
  %c = get ptr, %record[2]
  %scratch = get ptr, %record[3]
  %steps = get i64, %record[4]
  %tiles = get i64, %record[5]
  %width = get i64, %record[6]
  br label %panel
panel:
  %number = phi i64 [ %first, %entry ], [ %number1, %last ]
  %column = mul i64 %number, {columns}
  %source = getelementptr i{bits}, ptr %b, i64 %column
  br label %copy
copy:
  %i = phi i64 [ 0, %panel ], [ %i1, %copy ]
  %from = phi ptr [ %source, %panel ], [ %from1, %copy ]
  %to = phi ptr [ %scratch, %panel ], [ %to1, %copy ]
{copy}
  %to1 = getelementptr {acc}, ptr %to, i64 {columns}
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %steps), label %copy, label %tile
tile:
  %t = phi i64 [ 0, %copy ], [ %t1, %store ]
  %row = mul i64 %t, {rows}
  %a0 = getelementptr {acc}, ptr %a, i64 $(mul i64 %row, %steps)"""
"""The kernel up to its loop over steps; %tiles are the tiles of a panel, and %width is the number
of columns of the right operand and of the result."""

_COPY = """\
  %x = load {row}, ptr %from, align 1
  store {row} %x, ptr %to, align 64
  %from1 = getelementptr i{bits}, ptr %from, i64 %width"""

_COPY_PAIRS = """\
  %x = load {row}, ptr %from, align 1
  %next = getelementptr i16, ptr %from, i64 %width
  %y = load {row}, ptr %next, align 1
  %z = shufflevector {row} %x, {row} %y, {pairs}
  store <{double} x i16> %z, ptr %to, align 64
  %from1 = getelementptr i16, ptr %next, i64 %width"""
"""Two rows of the right operand, in pairs of elements of one column."""

_MULTIPLY = """\
  %p{n} = mul {vector} %x{r}, %y{h}"""

_MULTIPLY_PAIRS = """\
  %m{n} = mul nsw {products} %x{r}, %y{h}
  %even{n} = shufflevector {products} %m{n}, {products} poison, {evens}
  %odd{n} = shufflevector {products} %m{n}, {products} poison, {odds}
  %p{n} = add {vector} %even{n}, %odd{n}"""


def product_kernel(tile: ProductTile) -> Kernel:
    """Return the kernel of a tile.

    Its record has the addresses of the left operand, the right one, the result and the scratch
    memory of a panel, the steps, the tiles of a panel, and the columns of the result.
    """
    bits, rows, lanes, columns = tile.bits, tile.rows, tile.lanes, tile.columns
    acc, double = f"i{8 * tile.accumulator.itemsize}", 2 * columns
    vector, pairs = f"<{lanes} x {acc}>", f"<{2 * lanes} x i16>"
    words = {
        "bits": bits,
        "rows": rows,
        "columns": columns,
        "double": double,
        "acc": acc,
        "vector": vector,
        "products": f"<{2 * lanes} x i32>",
        "row": f"<{columns} x i{bits}>",
        "evens": _lanes(range(0, 2 * lanes, 2)),
        "odds": _lanes(range(1, 2 * lanes, 2)),
        "pairs": _lanes(i // 2 + i % 2 * columns for i in range(double)),
    }
    is_paired = tile.pair > 1
    copy = (_COPY_PAIRS if is_paired else _COPY).format(**words)
    lines = [_START.format(copy=copy, **words)]
    add = lines.append
    for r in range(1, rows):
        add(f"%a{r} = getelementptr {acc}, ptr %a{r - 1}, i64 %steps")
    add("br label %step\nstep:\n%k = phi i64 [ 0, %tile ], [ %k1, %step ]")
    add("%at = phi ptr [ %scratch, %tile ], [ %at1, %step ]")
    places = list(itertools.product(range(rows), range(_VECTORS)))
    for r, h in places:
        add(f"%s{r}_{h} = phi {vector} [ zeroinitializer, %tile ], [ %t{r}_{h}, %step ]")
    for h in range(_VECTORS):
        operand = pairs if is_paired else vector
        at = f"$(getelementptr {acc}, ptr %at, i64 {h * lanes})"
        add(f"%y{h}{'p' * is_paired} = load {operand}, ptr {at}, align {lanes * 4}")
        if is_paired:
            add(f"%y{h} = sext {pairs} %y{h}p to {words['products']}")
    for r in range(rows):
        element = f"$(load {acc}, ptr $(getelementptr {acc}, ptr %a{r}, i64 %k), align 1)"
        add(f"%e{r} = insertelement {vector} poison, {acc} {element}, i64 0")
        same = f"shufflevector {vector} %e{r}, {vector} poison, <{lanes} x i32> zeroinitializer"
        if is_paired:
            add(f"%x{r} = sext {pairs} $(bitcast {vector} $({same}) to {pairs}) to")
            lines[-1] += f" {words['products']}"
        else:
            add(f"%x{r} = {same}")
        for h in range(_VECTORS):
            text = _MULTIPLY_PAIRS if is_paired else _MULTIPLY
            add(text.format(n=f"{r}_{h}", r=r, h=h, **words))
            add(f"%t{r}_{h} = add {vector} %s{r}_{h}, %p{r}_{h}")
    add(f"%at1 = getelementptr {acc}, ptr %at, i64 {columns}\n%k1 = add i64 %k, 1")
    add("br i1 $(icmp ult i64 %k1, %steps), label %step, label %store\nstore:")
    add("%place = add i64 $(mul i64 %row, %width), %column")
    add(f"%c0 = getelementptr {acc}, ptr %c, i64 %place")
    for r, h in places:
        if r and not h:
            add(f"%c{r} = getelementptr {acc}, ptr %c{r - 1}, i64 %width")
        to = f"$(getelementptr {acc}, ptr %c{r}, i64 {h * lanes})"
        add(f"store {vector} %t{r}_{h}, ptr {to}, align 1")
    add("%t1 = add i64 %t, 1")
    add("br i1 $(icmp ult i64 %t1, %tiles), label %tile, label %last\nlast:")
    add("%number1 = add i64 %number, 1")
    add("br i1 $(icmp ult i64 %number1, %end), label %panel, label %exit\nexit:\nret void\n}")
    return Kernel(words_of("\n".join(lines)), ())


def _lanes(numbers: Any) -> str:
    indices = [f"i32 {number}" for number in numbers]
    return f"<{len(indices)} x i32> <{', '.join(indices)}>"


class Products:
    """The integer products of a process by machine code, which is compiled once it pays.

    With `now`, the first product of each kind compiles it. `kernels` has the compiled kernels and
    their tiles, by the bits of the elements; None if products by BLAS are faster.
    """

    def __init__(self, now: bool) -> None:
        self.now, self.why, self.numpy_time = now, "", 0.0
        self.kernels: dict[int, tuple[Any, ProductTile] | None] = {}

    def product(
        self, multiply: Multiply, dtype: np.dtype[Any], threads: int, x: Array, y: Array
    ) -> Array:
        """Return x @ y for operands of integer dtypes, converted to one integer dtype.

        `multiply` computes the product where there is no machine code. No operand may be empty.
        """
        if not self.why and (self.now or self.kernels or self.numpy_time > COMPILE_COST):
            bits = element_bits(x, y, dtype)
            if entry := self._kernel(bits):
                return run(*entry, x, y, dtype, threads)
        start = perf_counter_ns()
        result = multiply(x, y)
        self.numpy_time += perf_counter_ns() - start
        return result

    def _kernel(self, bits: int) -> tuple[Any, ProductTile] | None:
        """Return the kernel for elements of some bits, and its tile; None if there is none yet."""
        if bits not in self.kernels and self.now:
            self.compile(bits)
        elif bits not in self.kernels:
            submit(self.compile, bits)
        return self.kernels.get(bits)

    def compile(self, bits: int) -> None:
        """Compile the kernel for elements of some bits, unless LLVM fails: `why` has the reason."""
        with LOCK:
            if bits in self.kernels or self.why:
                return
            try:
                tile = tile_of(bits, engine().processor().features)
                kernel = tile and engine().compile_kernel(product_kernel(tile), self)
            except Exception as error:  # any failure of LLVM: NumPy is the fallback
                self.why = failure_reason(error)
            else:
                self.kernels[bits] = (kernel, tile) if tile else None

    def let_go(self, kernel: Any) -> None:
        """Evict a kernel; it is recompiled by the next product of its kind."""
        entries = self.kernels.items()
        self.kernels = {
            bits: entry for bits, entry in entries if not entry or entry[0] is not kernel
        }


@cache
def products(now: bool) -> Products:
    """Return the products of this process."""
    return Products(now)


def element_bits(x: Array, y: Array, dtype: np.dtype[Any]) -> int:
    """Return the fewest bits of elements with which a product of x and y is right in a dtype."""
    operands = [_signed(x, dtype), _signed(y, dtype)]
    is_narrow = all(
        each.itemsize == 1 or each.dtype == np.int16 or magnitude(each) < 1 << 15
        for each in operands
    )
    if is_narrow and dtype.itemsize > 4:
        left, right = map(magnitude, operands)
        is_narrow = left * right * x.shape[-1] < 1 << 31
    return 16 if is_narrow else max(32, 8 * dtype.itemsize)


def _signed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers modulo 2**bits as signed integers, if they have as many bits as a dtype."""
    return x.view(f"i{x.itemsize}") if x.itemsize == dtype.itemsize else x


def run(
    kernel: Any, tile: ProductTile, x: Array, y: Array, dtype: np.dtype[Any], threads: int
) -> Array:
    """Return x @ y in an integer dtype by a kernel, on at most some threads."""
    left = _padded(_signed(x, dtype), tile, tile.rows, tile.pair)
    right = _padded(_signed(y, dtype), tile, tile.pair, tile.columns)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    result = np.empty((*batch, left.shape[-2], right.shape[-1]), tile.accumulator)
    steps, width = left.shape[-1] // tile.pair, right.shape[-1]
    matrices = [[left, right, result]]
    if batch:
        stacks = [np.broadcast_to(each, (*batch, *each.shape[-2:])) for each in matrices[0]]
        matrices = [[stack[index] for stack in stacks] for index in np.ndindex(batch)]
    parts = _parts(tile, len(matrices), left.shape[-2:], width, threads)

    def work(lane: Lane, numbers: Iterator[int]) -> None:
        size = steps * tile.columns * tile.accumulator.itemsize
        memory = np.empty(size + _LINE, np.uint8)
        scratch = -(-memory.ctypes.data // _LINE) * _LINE
        for i in numbers:
            number, (first, last), panels = parts[i]
            a, b, c = matrices[number]
            start = slice(first * tile.rows, None)
            addresses = [each.ctypes.data for each in (a[start], b, c[start])]
            record = (c_int64 * 7)(*addresses, scratch, steps, last - first, width)
            kernel.function(record, kernel.context, *panels)

    kernel.words[0] = 1
    time = result.size * left.shape[-1] * PRODUCT_TERM
    share(len(parts), work, threads if time > SECOND_THREAD else 1, Lane(), [])
    whole = np.ascontiguousarray(result[..., : x.shape[-2], : y.shape[-1]])
    return whole.view(dtype) if whole.itemsize == dtype.itemsize else whole.astype(dtype)


_LINE = 64
"""The alignment of scratch memory in bytes."""


def _padded(x: Array, tile: ProductTile, rows: int, columns: int) -> Array:
    """Return matrices as elements of a tile, with zeros up to multiples of rows and columns."""
    m, n = x.shape[-2:]
    shape = -(-m // rows) * rows, -(-n // columns) * columns
    dtype = np.dtype(f"i{tile.bits // 8}")
    if shape == (m, n):
        return np.ascontiguousarray(x.astype(dtype, copy=False))
    padded = np.zeros((*x.shape[:-2], *shape), dtype)
    padded[..., :m, :n] = x
    return padded


Part: TypeAlias = tuple[int, Range, Range]


def _parts(
    tile: ProductTile, matrices: int, left: tuple[int, ...], width: int, threads: int
) -> list[Part]:
    """Return the parts of the work: a matrix, a range of tiles of rows, and a range of panels."""
    most = RANGE / PRODUCT_TERM  # terms of a part
    panels, tiles = width // tile.columns, left[-2] // tile.rows
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
