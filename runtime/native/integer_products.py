"""Products of integer matrices: tiles of the result in registers, panels in cache, on threads.

A kernel computes some panels of columns of a result. It copies a panel of the right operand, as
elements of the width in which it multiplies, to scratch memory that fits the cache, and multiplies
it by the left operand, a few rows at a time: each step adds the products of some columns of the
left and as many rows of the right operand to accumulators in registers. An accumulator of 32 bits
takes two steps of 16-bit elements at once (pmaddwd, vpdpwssd), or four steps of bytes (vpdpbusd).
The last tile and the last panel may overlap the ones before them. All arithmetic wraps.

The instruction for bytes multiplies unsigned by signed ones. Where both operands are signed, the
right one becomes unsigned by adding 128 to each element, and where both are unsigned, signed by
subtracting 128; the accumulators start at what that changes, 128 times the sum of a row of the left
operand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from graphir.hints import Array
from graphir.runtime.native.assembly import words_of
from graphir.runtime.native.compilation import PaidKernels
from graphir.runtime.native.drivers.records import (
    WordRecord,
    record,
    with_numbers,
    word,
    words_of_records,
)
from graphir.runtime.native.drivers.thread_pool import Job, job_of_calls
from graphir.runtime.native.probe import engine
from graphir.runtime.native.region_writer import Kernel
from graphir.runtime.program.blocks import Range, Uniform
from graphir.runtime.program.cost_model import COST, KEPT_LAYOUTS, LINE
from graphir.runtime.program.memory import lookup
from graphir.semantics.integer_products import magnitude_of

if TYPE_CHECKING:
    from graphir.runtime.native.engine import Compiled


Multiply: TypeAlias = Callable[[Array, Array], Array]


_VECTORS = 2
"""The vectors of a row of a tile of the result."""

BYTE_PRODUCT = "@llvm.x86.avx512.vpdpbusd.{bits}"
"""The function of accumulators, of unsigned and of signed bytes, all in vectors of `bits` bits."""

BYTE_PRODUCT_TEXT = "declare {vector} {name}({vector}, {vector}, {vector})"
"""Its declaration; LLVM adopts these dtypes, those of the time before LLVM 22, as newer ones."""


class ProductTile(NamedTuple):
    """A tile of the result: `rows` rows of two vectors, of `lanes` accumulators each.

    The kernel multiplies elements of `bits` bits.
    """

    bits: int
    rows: int
    lanes: int

    @property
    def group(self) -> int:
        """The number of steps that an instruction takes at once."""
        return max(1, 32 // self.bits)

    @property
    def accumulator(self) -> np.dtype[Any]:
        """The dtype of the result."""
        return np.dtype(f"i{max(4, self.bits // 8)}")

    @property
    def columns(self) -> int:
        """The columns of a panel."""
        return _VECTORS * self.lanes


def tile_of(bits: int, features: Collection[str]) -> ProductTile | None:
    """Return the tile for elements of some bits; None where other code is faster.

    Without an instruction for bytes they are faster as 16-bit elements, and without one for 64-bit
    elements BLAS is faster: kernels, products. The accumulators take half of the registers of a
    processor or more.
    """
    has, wide = {*features}, 64 // max(4, bits // 8)
    if bits == 8:
        if {"avx512vnni", "avx512bw"} <= has:
            return ProductTile(bits, 12, wide)
        return ProductTile(bits, 4, wide // 2) if "avxvnni" in has else None
    if {"avx512bw", "avx512dq"} <= has:
        return ProductTile(bits, 8, wide)
    return ProductTile(bits, 4, wide // 2) if "avx2" in has and bits < 64 else None


class ProductCode(NamedTuple):
    """What the code of a kernel depends on.

    The right operand has elements of the dtype `right`; its rows are contiguous, or its columns
    with `by_columns`. The left operand has elements of the tile; for a tile of bytes, `unsigned`
    says how to read them.
    """

    tile: ProductTile
    right: np.dtype[Any]
    by_columns: bool = False
    unsigned: bool = False

    @property
    def offset(self) -> int:
        """What the kernel adds to the elements of the right operand: 0, 128 or -128."""
        if self.tile.bits > 8 or self.unsigned is (self.right.kind == "i"):
            return 0
        return -128 if self.unsigned else 128


_START = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  %a = get ptr, %record[ProductRecord.left]
  %b = get ptr, %record[ProductRecord.right]
  %c = get ptr, %record[ProductRecord.result]
  %scratch = get ptr, %record[ProductRecord.scratch]
  %terms = get i64, %record[ProductRecord.terms]
  %height = get i64, %record[ProductRecord.height]
  %width = get i64, %record[ProductRecord.width]
  %pitch = get i64, %record[ProductRecord.left_pitch]
  %right_pitch = get i64, %record[ProductRecord.right_pitch]
  %tiles = udiv i64 $(add i64 %height, {less_rows}), {rows}
  %steps = udiv i64 $(add i64 %terms, {less_group}), {group}
  %last_row = sub i64 %height, {rows}
  %last_column = sub i64 %width, {columns}
  br label %panel
panel:
  %number = phi i64 [ %first, %entry ], [ %number1, %last ]
  %column = call i64 @llvm.umin(i64 $(mul i64 %number, {columns}), i64 %last_column)"""
"""The kernel up to a panel."""

_COPY_ROWS = """\
  %source = getelementptr i{source}, ptr %b, i64 %column
  %last_term = sub i64 %terms, 1
  br label %copy
copy:
  %i = phi i64 [ 0, %panel ], [ %i1, %copy ]
  %to = phi ptr [ %scratch, %panel ], [ %to1, %copy ]
  %k0 = mul i64 %i, {group}
{rows_of_group}
  store <{panel} x i{bits}> {copy}, ptr %to, align 64
  %to1 = getelementptr i{bits}, ptr %to, i64 {panel}
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %steps), label %copy, label %tiling
tiling:
  br label %tile"""
"""The copy of a panel of the right operand, whose rows are contiguous. Beyond the last row it
repeats that row, where the left operand has zeros."""

_COPY_COLUMNS = """\
  %source = getelementptr i8, ptr %b, i64 $(mul i64 %column, %right_pitch)
  %last_term = sub i64 %terms, {group}
  br label %line
line:
  %j = phi i64 [ 0, %panel ], [ %j1, %lined ]
  %from = phi ptr [ %source, %panel ], [ %from1, %lined ]
  %start = getelementptr <{group} x i{bits}>, ptr %scratch, i64 %j
  br label %copy
copy:
  %i = phi i64 [ 0, %line ], [ %i1, %copy ]
  %to = phi ptr [ %start, %line ], [ %to1, %copy ]
  %k0 = mul i64 %i, {group}
  %k1 = call i64 @llvm.umin(i64 %k0, i64 %last_term)
  %whole = load i{unit}, ptr $(getelementptr i{source}, ptr %from, i64 %k1), align 1
  %bits_before = mul i64 $(sub i64 %k0, %k1), {source}
  %shift = trunc i256 $(zext i64 %bits_before to i256) to i{unit}
  %e0 = bitcast i{unit} $(lshr i{unit} %whole, %shift) to <{group} x i{source}>
{elements}
  store <{group} x i{bits}> {copy}, ptr %to, align 4
  %to1 = getelementptr i{bits}, ptr %to, i64 {panel}
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %steps), label %copy, label %lined
lined:
  %from1 = getelementptr i8, ptr %from, i64 %right_pitch
  %j1 = add i64 %j, 1
  br i1 $(icmp ult i64 %j1, {columns}), label %line, label %tiling
tiling:
  br label %tile"""
"""The same for contiguous columns. It reads the last group of a column with some elements before
it, and shifts it into place."""

_TILE = """\
tile:
  %t = phi i64 [ 0, %tiling ], [ %t1, %store ]
  %row = call i64 @llvm.umin(i64 $(mul i64 %t, {rows}), i64 %last_row)
  %a0 = getelementptr i8, ptr %a, i64 $(mul i64 %row, %pitch)"""

_MULTIPLY = """\
  %p{n} = mul {vector} %x{r}, %y{h}
  %t{n} = add {vector} %s{n}, %p{n}"""

_MULTIPLY_PAIRS = """\
  %m{n} = mul nsw {products} %x{r}, %y{h}
  %even{n} = shufflevector {products} %m{n}, {products} poison, {evens}
  %odd{n} = shufflevector {products} %m{n}, {products} poison, {odds}
  %p{n} = add {vector} %even{n}, %odd{n}
  %t{n} = add {vector} %s{n}, %p{n}"""


@record
class ProductRecord(WordRecord):
    """The record of a kernel: addresses of the operands, the result and scratch memory for a panel.

    Then come the terms of a sum, the rows and columns of the result, the bytes between rows of the
    left operand, and those between rows, or columns, of the right one. Rows of the left operand end
    with zeros that fill a vector.
    """

    fields = "left right result scratch terms height width left_pitch right_pitch"


class ProductWriter:
    """The writer of the kernel of a code, which reads a `ProductRecord`."""

    def __init__(self, code: ProductCode) -> None:
        self.code = code
        self.lines: list[str] = []
        tile = self.tile = code.tile
        lanes, group = tile.lanes, tile.group
        self.acc = f"i{8 * tile.accumulator.itemsize}"
        self.vector, self.operand = f"<{lanes} x {self.acc}>", f"<{group * lanes} x i{tile.bits}>"
        self.words = {
            "bits": tile.bits,
            "source": 8 * code.right.itemsize,
            "unit": 8 * code.right.itemsize * group,
            "rows": tile.rows,
            "less_rows": tile.rows - 1,
            "group": group,
            "less_group": group - 1,
            "columns": tile.columns,
            "panel": group * tile.columns,
            "vector": self.vector,
            "products": f"<{2 * lanes} x i32>",
            "evens": _lanes(range(0, 2 * lanes, 2)),
            "odds": _lanes(range(1, 2 * lanes, 2)),
        }
        self.places = [*itertools.product(range(tile.rows), range(_VECTORS))]

    def kernel(self) -> Kernel:
        """Return the kernel."""
        self._add(_START.format(**self.words))
        self._copy()
        self._add(_TILE.format(**self.words))
        for r in range(1, self.tile.rows):
            self._add(f"%a{r} = getelementptr i8, ptr %a{r - 1}, i64 %pitch")
        before = self._sums() if self.code.offset else "tile"
        self._steps(before)
        self._store()
        if self.tile.bits == 8:
            self._add(BYTE_PRODUCT_TEXT.format(vector=self.vector, name=self._byte_product))
        text = with_numbers("\n".join(self.lines), ProductRecord)
        return Kernel(words_of(text), ())

    def _add(self, line: str) -> None:
        self.lines.append(line)

    @property
    def _byte_product(self) -> str:
        return BYTE_PRODUCT.format(bits=32 * self.tile.lanes)

    # -- the copy of a panel

    def _copy(self) -> None:
        template = _COPY_COLUMNS if self.code.by_columns else _COPY_ROWS
        start: list[str] = self.lines
        self.lines = []
        if self.code.by_columns:
            rows = [("%e0", 8 * self.code.right.itemsize)]
            count = self.tile.group
        else:
            rows = [self._row(g) for g in range(self.tile.group)]
            count = self.tile.columns
        rows = [self._narrowed(*row, count) for row in rows]
        while len(rows) > 1:
            rows = [self._interleaved(*both) for both in zip(rows[::2], rows[1::2], strict=True)]
        name = self._widened(*rows[0])
        body, self.lines = "\n".join(self.lines), start
        self._add(template.format(rows_of_group=body, elements=body, copy=name, **self.words))

    def _row(self, g: int) -> tuple[str, int]:
        source, place = self.words["source"], "%k0"
        if g:
            place = f"%k{g}"
            self._add(f"{place}_ = add i64 %k0, {g}")
            self._add(f"{place} = call i64 @llvm.umin(i64 {place}_, i64 %last_term)")
        at = f"$(getelementptr i8, ptr %source, i64 $(mul i64 {place}, %right_pitch))"
        self._add(f"%e{g} = load <{self.tile.columns} x i{source}>, ptr {at}, align 1")
        return f"%e{g}", int(source)

    def _narrowed(self, name: str, bits: int, count: int) -> tuple[str, int, int]:
        """Return the elements of a vector, their bits, and their count, without high bits."""
        if bits <= self.tile.bits:
            return name, bits, count
        self._add(f"{name}t = trunc <{count} x i{bits}> {name} to <{count} x i{self.tile.bits}>")
        return f"{name}t", self.tile.bits, count

    def _interleaved(
        self, first: tuple[str, int, int], second: tuple[str, int, int]
    ) -> tuple[str, int, int]:
        """Return the vector of the elements of two vectors in turn, as twice as wide elements."""
        (x, bits, count), y = first, second[0]
        kind, name = f"<{count} x i{bits}>", f"{x}_{y[1:]}"
        lanes = _lanes(i // 2 + i % 2 * count for i in range(2 * count))
        self._add(f"{name}b = shufflevector {kind} {x}, {kind} {y}, {lanes}")
        self._add(f"{name} = bitcast <{2 * count} x i{bits}> {name}b to <{count} x i{2 * bits}>")
        return name, 2 * bits, count

    def _widened(self, name: str, bits: int, count: int) -> str:
        """Return the name of a vector of packed elements, in the tile's bits, with the offset."""
        source, to = min(int(self.words["source"]), self.tile.bits), self.tile.bits
        size = count * bits // source
        kind = f"<{size} x i{source}>"
        if bits != source:
            self._add(f"%bits = bitcast <{count} x i{bits}> {name} to {kind}")
            name = "%bits"
        if source < to:
            extension = "sext" if self.code.right.kind == "i" else "zext"
            self._add(f"%wide = {extension} {kind} {name} to <{size} x i{to}>")
            return "%wide"
        if self.code.offset:
            self._add(f"%offset = xor {kind} {name}, splat (i8 -128)")
            return "%offset"
        return name

    # -- a tile

    def _sums(self) -> str:
        """Write what the offset changes in each row, as %init, and return the last block."""
        rows, ones = range(self.tile.rows), f"splat (i32 {0x01010101})"
        self._add("br label %sum\nsum:\n%l = phi i64 [ 0, %tile ], [ %l1, %sum ]")
        for r in rows:
            self._add(f"%u{r} = phi {self.vector} [ zeroinitializer, %tile ], [ %v{r}, %sum ]")
        for r in rows:
            at = f"$(getelementptr i8, ptr %a{r}, i64 %l)"
            self._add(f"%w{r} = load {self.vector}, ptr {at}, align 1")
            self._byte_dot(f"%v{r}", f"%u{r}", f"%w{r}", ones)
        self._add(f"%l1 = add i64 %l, {4 * self.tile.lanes}")
        self._add("br i1 $(icmp ult i64 %l1, %pitch), label %sum, label %summed\nsummed:")
        for r in rows:
            self._add(f"%z{r} = call i32 @llvm.vector.reduce.add({self.vector} %v{r})")
            self._splat(f"%init{r}", f"$(mul i32 %z{r}, {-self.code.offset})")
        return "summed"

    def _byte_dot(self, name: str, acc: str, left: str, right: str) -> None:
        """Write the sum of accumulators and the products of bytes, the left operand's first."""
        factors = (left, right) if self.code.unsigned else (right, left)
        arguments = ", ".join(f"{self.vector} {vector}" for vector in (acc, *factors))
        self._add(f"{name} = call {self.vector} {self._byte_product}({arguments})")

    def _splat(self, name: str, element: str) -> None:
        vector, lanes = self.vector, self.tile.lanes
        self._add(f"{name}_ = insertelement {vector} poison, {self.acc} {element}, i64 0")
        mask = f"<{lanes} x i32> zeroinitializer"
        self._add(f"{name} = shufflevector {vector} {name}_, {vector} poison, {mask}")

    def _steps(self, before: str) -> None:
        """Write the loop over the steps, after the block `before`."""
        tile, vector = self.tile, self.vector
        self._add(f"br label %step\nstep:\n%k = phi i64 [ 0, %{before} ], [ %knext, %step ]")
        self._add(f"%at = phi ptr [ %scratch, %{before} ], [ %at1, %step ]")
        for r, h in self.places:
            start = f"%init{r}" if self.code.offset else "zeroinitializer"
            self._add(f"%s{r}_{h} = phi {vector} [ {start}, %{before} ], [ %t{r}_{h}, %step ]")
        is_paired = tile.group == 2
        for h in range(_VECTORS):
            at = f"$(getelementptr {self.acc}, ptr %at, i64 {h * tile.lanes})"
            kind = self.operand if is_paired else vector
            name = f"%y{h}p" if is_paired else f"%y{h}"
            self._add(f"{name} = load {kind}, ptr {at}, align {tile.lanes * 4}")
            if is_paired:
                self._add(f"%y{h} = sext {self.operand} {name} to {self.words['products']}")
        for r in range(tile.rows):
            element = (
                f"$(load {self.acc}, ptr $(getelementptr {self.acc}, ptr %a{r}, i64 %k), align 1)"
            )
            self._splat(f"%x{r}p" if is_paired else f"%x{r}", element)
            if is_paired:
                same = f"$(bitcast {vector} %x{r}p to {self.operand})"
                self._add(f"%x{r} = sext {self.operand} {same} to {self.words['products']}")
            for h in range(_VECTORS):
                if tile.group > 2:
                    self._byte_dot(f"%t{r}_{h}", f"%s{r}_{h}", f"%x{r}", f"%y{h}")
                    continue
                text = _MULTIPLY_PAIRS if is_paired else _MULTIPLY
                self._add(text.format(n=f"{r}_{h}", r=r, h=h, **self.words))
        self._add(f"%at1 = getelementptr {self.acc}, ptr %at, i64 {tile.columns}")
        self._add("%knext = add i64 %k, 1")
        self._add("br i1 $(icmp ult i64 %knext, %steps), label %step, label %store")

    def _store(self) -> None:
        """Write the stores of a tile, and the ends of the loops over tiles and panels."""
        self._add("store:\n%place = add i64 $(mul i64 %row, %width), %column")
        self._add(f"%c0 = getelementptr {self.acc}, ptr %c, i64 %place")
        for r, h in self.places:
            if r and not h:
                self._add(f"%c{r} = getelementptr {self.acc}, ptr %c{r - 1}, i64 %width")
            to = f"$(getelementptr {self.acc}, ptr %c{r}, i64 {h * self.tile.lanes})"
            self._add(f"store {self.vector} %t{r}_{h}, ptr {to}, align 1")
        self._add("%t1 = add i64 %t, 1")
        self._add("br i1 $(icmp ult i64 %t1, %tiles), label %tile, label %last\nlast:")
        self._add("%number1 = add i64 %number, 1")
        self._add("br i1 $(icmp ult i64 %number1, %end), label %panel, label %exit\nexit:")
        self._add("ret void\n}")


def _lanes(numbers: Iterable[int]) -> str:
    indices = [f"i32 {number}" for number in numbers]
    return f"<{len(indices)} x i32> <{', '.join(indices)}>"


class ProductKind(NamedTuple):
    """A kind of product, which has one kernel: see `ProductCode`.

    Elements of `bits` bits are the narrowest with which the product is right.
    """

    bits: int
    right: np.dtype[Any]
    by_columns: bool
    unsigned: bool


class Products(PaidKernels[ProductKind, tuple[Any, ProductCode]]):
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
        self,
        kernel: Compiled,
        code: ProductCode,
        x: Array,
        y: Array,
        dtype: np.dtype[Any],
        threads: int,
    ) -> Array:
        """Return x @ y in an integer dtype by a kernel, on at most some threads."""
        left = _left(_signed(x, dtype), code.tile)
        right = _right(_signed(y, dtype), code)
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        result = np.empty((*batch, left.shape[-2], right.shape[-1]), code.tile.accumulator)
        operands, terms = (left, right, result), x.shape[-1]
        key = kernel, terms, threads, *[(array.shape, array.strides) for array in operands]
        bind = partial(_job, kernel, code, operands, terms, threads)
        job = lookup(self._jobs, key, bind, COST.KEPT_PLANS)
        assert job
        job.run([array.ctypes.data for array in operands])
        product = np.ascontiguousarray(result[..., : x.shape[-2], : y.shape[-1]])
        return product.view(dtype) if product.itemsize == dtype.itemsize else product.astype(dtype)

    def compiled(self, kind: ProductKind) -> tuple[Any, ProductCode] | None:
        """Return the kernel of a kind, and its code; None if BLAS is faster."""
        features = engine().processor().features
        tile = tile_of(kind.bits, features) or tile_of(max(16, kind.bits), features)
        if not tile:
            return None
        code = ProductCode(tile, *kind[1:])
        return engine().compile_kernel(ProductWriter(code).kernel()), code


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
"""The largest number of steps that an instruction takes at once."""


def element_bits(x: Array, y: Array, dtype: np.dtype[Any]) -> int:
    """Return the fewest bits of elements with which a product of x and y is right in a dtype."""
    is_narrow = all(
        operand.itemsize == 1
        or _signed(operand, dtype).dtype == np.int16
        or magnitude_of(operand, dtype) < 1 << 15
        for operand in (x, y)
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
    kernel: Compiled, code: ProductCode, operands: Sequence[Array], terms: int, threads: int
) -> Job:
    """Return the calls of a kernel for the operands of a tile and a result."""
    tile, (left, right, result) = code.tile, operands
    height, width = result.shape[-2:]
    batch, sizes = result.shape[:-2], [array.shape[-2:] for array in operands]
    stacks = [np.broadcast_to(x, (*batch, *n)) for x, n in zip(operands, sizes, strict=True)]
    pitch, right_pitch = left.strides[-2], right.strides[-1 if code.by_columns else -2]
    rows = pitch, 0, result.strides[-2]
    matrices = [*np.ndindex(batch)]
    records: list[ProductRecord] = []
    ranges: list[Range] = []
    terms_per_part = COST.RANGE / COST.PRODUCT_TERM
    parts = _parts(tile, len(matrices), left.shape[-2:], width, threads, terms_per_part)
    for number, (first, last), panels in parts:
        start, end = min(first * tile.rows, height - tile.rows), min(last * tile.rows, height)
        index = matrices[number]
        places = [
            start * row + sum(at * by for at, by in zip(index, stack.strides, strict=False))
            for stack, row in zip(stacks, rows, strict=True)
        ]
        records.append(ProductRecord(*places, 0, terms, end - start, width, pitch, right_pitch))
        ranges.append(panels)
    time = result.size * terms * COST.PRODUCT_TERM
    scratch = -(-terms // tile.group) * tile.columns * tile.accumulator.itemsize
    workers = threads if time > COST.NATIVE_SECOND_THREAD else 1
    words = words_of_records(records).reshape(len(records), -1)
    scratch_word = word(ProductRecord, "scratch")
    return job_of_calls(kernel, words, len(operands), ranges, workers, scratch, scratch_word)


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
    tile: ProductTile,
    matrices: int,
    left: tuple[int, ...],
    width: int,
    threads: int,
    terms_per_part: float,
) -> list[Part]:
    """Return the parts of the work: a matrix, a range of tiles of rows, and a range of panels.

    A part has about `terms_per_part` terms.
    """
    panels, tiles = -(-width // tile.columns), -(-left[-2] // tile.rows)
    of_tile = tile.rows * left[-1] * tile.columns  # the terms of a tile
    few = matrices * panels < 2 * threads
    rows = max(1, int(terms_per_part / (of_tile * panels))) if few else tiles
    columns = panels if few else max(1, int(terms_per_part / (of_tile * tiles)))
    return [
        (number, rows_, columns_)
        for number in range(matrices)
        for columns_ in Uniform(panels, columns)
        for rows_ in Uniform(tiles, rows)
    ]
