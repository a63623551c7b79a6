"""Reductions of the rows of a matrix into one row, in the order of the rows.

Tiles of columns: kernels go down the rows of a matrix with their results in registers.

A tile is some neighbouring lanes of a row, in several vectors. The kernel loads the results of the
lanes, joins them with the values of each row, in order, as NumPy does, and stores them. So a thread
reads a part of each row, one row after another, and never again. The last vector may overlap the
one before it: both then have the same results of the same lanes.

`ColumnWriter` writes such a kernel for a region whose values are reduced: in each row the kernel
computes the values of the tile and joins them with the results of the rows before, without memory
for the values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.hints import Array
from graphir.public import DType, Symbol
from graphir.runtime.native.assembly import lane, stored_type, words_of
from graphir.runtime.native.compilation import PaidKernels, submit
from graphir.runtime.native.drivers.row_phases import PhaseTable, PlacedKernel
from graphir.runtime.native.drivers.thread_pool import Job, job_of_calls
from graphir.runtime.native.instruction_selection import NativeCode
from graphir.runtime.native.probe import engine, features
from graphir.runtime.native.region_writer import Kernel, Kind, ModuleWriter
from graphir.runtime.native.row_reductions import Reduction
from graphir.runtime.program.blocks import Range
from graphir.runtime.program.cost_model import COST, LINE
from graphir.runtime.program.memory import lookup
from graphir.runtime.program.rows import ColumnSpace, finish_columns, neutral
from graphir.runtime.program.tier import RowKernel, RowOperand

if TYPE_CHECKING:
    from graphir.runtime.native.engine import Compiled


_START = """
define void @kernel(ptr %record, ptr %context, i64 %begin, i64 %limit) {{
entry:
  %first = get i64, %record[{at}]
  %count = get i64, %record[{at1}]
  %each = get i64, %record[{at2}]
{entry}
  br i1 $(icmp ult i64 %begin, %limit), label %part, label %exit
part:
  %at = phi i64 [ %begin, %entry ], [ %next, %last ]
  %inside = urem i64 %at, %each
  %lead = udiv i64 %at, %each
  %rows = call i64 @llvm.umin(i64 $(sub i64 %limit, %at), i64 $(sub i64 %each, %inside))
  %next = add i64 %at, %rows
{part}
  br label %row
row:
  %r = phi i64 [ 0, %part ], [ %next_r, %joined ]
{row}"""

_END = """
  br label %joined
joined:
{joined}
  %next_r = add i64 %r, 1
  br i1 $(icmp ult i64 %next_r, %rows), label %row, label %last
last:
{last}
  br i1 $(icmp ult i64 %next, %limit), label %part, label %exit
exit:
  ret void
}}"""

_AHEAD = 1 << 16
"""The bytes from a row to the row that is prefetched, with all rows between."""

_AHEAD_ROWS = """\
  %size{p} = call i64 @llvm.abs(i64 %by_row{p}, i1 false)
  %rows{p} = udiv i64 {bytes}, $(call i64 @llvm.umax(i64 %size{p}, i64 1))
  %ahead{p} = mul i64 %rows{p}, %by_row{p}"""

_PREFETCH = "  call void @llvm.prefetch(ptr {at}, i32 0, i32 3, i32 1)"

_REGISTERS, _FEW_REGISTERS = 16, 4
"""The most vectors of 64 bytes for results, with and without AVX-512: half of the registers."""

_CHEAP_REGISTERS = 4
"""The most vectors of results beside values that take many registers themselves."""

Body = Callable[[str], Sequence[str]]
"""Writes the code of the values that a row adds to a vector, whose lanes start at `%at{vector}`.

It returns a name for each reduction."""


class ColumnTile(NamedTuple):
    """The vectors of a tile, and the lanes of each."""

    vectors: int
    lanes: int


def reduction_of(name: str, dtype: np.dtype[Any]) -> Reduction:
    """Return a reduction of columns; a sum of bools is true if any is."""
    if dtype == np.bool_:
        return Reduction("any" if name == "sum" else name, np.dtype(np.uint8))
    return Reduction(name, dtype)


def tiles_of(
    space: ColumnSpace, threads: int, sizes: Sequence[int], cheap: bool, features: Collection[str]
) -> tuple[ColumnTile, Sequence[Range]]:
    """Return the form of tiles that cover the lanes, and their lanes.

    If a row is long enough, each thread has as many tiles.

    `sizes` are the bytes of an element of each reduction.
    """
    registers = _REGISTERS if "avx512f" in features else _FEW_REGISTERS
    vectors_per_tile = max(
        1, (registers if cheap else min(registers, _CHEAP_REGISTERS)) // len(sizes)
    )
    lanes = LINE // max(sizes)
    count = -(-space.lanes // (vectors_per_tile * lanes))
    if space.lead < threads and space.lanes >= threads * lanes:
        count = -(-count // threads) * threads
    least = space.lanes // count
    while lanes > least:
        lanes //= 2
    vectors = -(-(least + (space.lanes % count > 0)) // lanes)
    bounds = [space.lanes * i // count for i in range(count + 1)]
    return ColumnTile(vectors, lanes), list(itertools.pairwise(bounds))


def tile_kernel(
    tile: ColumnTile, places: int, reductions: Sequence[Reduction], lines: list[str], body: Body
) -> None:
    """Write the kernel of a tile for some matrices and reductions.

    `%p{k}` is the row of matrix k. The record has the addresses of the matrices and of the results;
    then the first lane, the number of lanes, and the rows for each leading element; then, for each
    matrix, the bytes from row to row, those from one leading element to the next, and those from
    lane to lane, `%st{k}`; and the bytes between leading elements of each result.
    """
    sums, vectors = list(enumerate(reductions)), range(tile.vectors)
    both = [(k, reduction, v) for k, reduction in sums for v in vectors]
    at, w = places + len(sums), tile.lanes
    entry, part = ["  %last_lane = sub i64 %count, " + str(w)], list[str]()
    for v in vectors:
        is_last = v == tile.vectors - 1  # the others are at constant distances
        offset = f"$(call i64 @llvm.umin(i64 {v * w}, i64 %last_lane))" if is_last else f"{v * w}"
        entry.append(f"  %at{v} = add i64 %first, {offset}")
    for p in range(places):
        entry += [
            f"  %base{p} = get ptr, %record[{p}]",
            f"  %by_row{p} = get i64, %record[{at + 3 + p}]",
            f"  %by_lead{p} = get i64, %record[{at + 3 + places + p}]",
            f"  %st{p} = get i64, %record[{at + 3 + 2 * places + p}]",
            _AHEAD_ROWS.format(p=p, bytes=_AHEAD),
        ]
        offset = f"$(add i64 $(mul i64 %inside, %by_row{p}), $(mul i64 %lead, %by_lead{p}))"
        part.append(f"  %b{p} = getelementptr i8, ptr %base{p}, i64 {offset}")
    for k, _ in sums:
        entry += [
            f"  %sums{k} = get ptr, %record[{places + k}]",
            f"  %by_sum{k} = get i64, %record[{at + 3 + 3 * places + k}]",
        ]
        offset = f"$(mul i64 %lead, %by_sum{k})"
        part.append(f"  %t{k} = getelementptr i8, ptr %sums{k}, i64 {offset}")
    for k, reduction, v in both:
        part.append(f"  %to{k}v{v} = getelementptr {reduction.kind}, ptr %t{k}, i64 %at{v}")
        part.append(f"  %old{k}v{v} = load {reduction.kinds(w)}, ptr %to{k}v{v}, align 1")
    row = [f"  %p{p} = phi ptr [ %b{p}, %part ], [ %q{p}, %joined ]" for p in range(places)]
    for k, reduction, v in both:
        old, new = f"[ %old{k}v{v}, %part ]", f"[ %new{k}v{v}, %joined ]"
        row.append(f"  %x{k}v{v} = phi {reduction.kinds(w)} {old}, {new}")
    names = {"entry": "\n".join(entry), "part": "\n".join(part), "row": "\n".join(row)}
    lines.append(_START.format(at=at, at1=at + 1, at2=at + 2, **names))
    for p in range(places):
        for v in vectors:
            start = f"$(getelementptr {reductions[0].kind}, ptr %p{p}, i64 %at{v})"
            lines.append(_PREFETCH.format(at=f"$(getelementptr i8, ptr {start}, i64 %ahead{p})"))
    values = [body(str(v)) for v in vectors]
    ends = [f"  %q{p} = getelementptr i8, ptr %p{p}, i64 %by_row{p}" for p in range(places)]
    last: list[str] = []
    for k, reduction, v in both:
        ends.append(f"  %new{k}v{v} = {reduction.join(f'%x{k}v{v}', values[v][k], w)}")
        last.append(f"  store {reduction.kinds(w)} %new{k}v{v}, ptr %to{k}v{v}, align 1")
    lines.append(_END.format(joined="\n".join(ends), last="\n".join(last)))


def tile_job(
    kernel: Compiled, records: NDArray[np.int64], memories: int, space: ColumnSpace, threads: int
) -> Job:
    """Return the calls of a kernel for all rows, by the records of its tiles."""
    parts = [*parts_of(space, len(records), threads)]
    repeated = np.repeat(records, len(parts), axis=0)
    return job_of_calls(kernel, repeated, memories, parts * len(records), threads)


def parts_of(space: ColumnSpace, count: int, threads: int) -> Iterator[Range]:
    """Yield ranges of rows: those of all leading elements, or fewer for too few tiles."""
    parts = min(space.lead, -(-threads // count))
    for i in range(parts):
        yield space.lead * i // parts * space.rows, space.lead * (i + 1) // parts * space.rows


class ColumnKinds(NamedTuple):
    """The signature of a kernel: the kinds of inputs along the lanes, the reductions, the tile."""

    kinds: tuple[Kind, ...]
    reductions: tuple[str, ...]
    tile: ColumnTile


class Steps(NamedTuple):
    """The bytes from lane to lane of an array, from row to row, and between leading elements."""

    lane: int
    row: int
    lead: int


class ColumnWriter(ModuleWriter):
    """The generator of a region with reductions of outer axes.

    The matrices of the kernel are the inputs and the results of the region (see `tile_kernel`).
    """

    def __init__(self, code: NativeCode, key: ColumnKinds, features: Collection[str]) -> None:
        super().__init__(code, key.kinds, features)
        self.outs = [code.bases[register] for register in code.outs.values()]
        self.places = {base: i for i, base in enumerate((*self.kinds, *self.outs))}
        self.scratch, self.tile = {}, key.tile
        self.columns = [
            (code.bases[register], reduction_of(name, code.dtypes[register]))
            for (_, register), name in zip(code.rows, key.reductions, strict=True)
        ]

    def kernel(self) -> Kernel:
        """Return the whole module."""
        text, reductions = self.text, [reduction for _, reduction in self.columns]
        text.width = self.tile.lanes
        self.same = self._constants()
        tile_kernel(self.tile, len(self.places), reductions, text.lines, self._values)
        return Kernel(words_of("\n".join(text.lines)), tuple(text.context))

    def _values(self, vector: str) -> Sequence[str]:
        """Write the values of a vector of a row, and return those that are reduced."""
        text, kinds = self.text, [reduction.kind for _, reduction in self.columns]
        value = self._vectors(vector, self.segments[0].vectors, ())
        values = [value(base).view(reduction.dtype).name for base, reduction in self.columns]
        if text.width > 1:
            return values
        pairs = zip(values, kinds, strict=True)  # a reduction of one lane takes scalars
        return [text.op(f"bitcast <1 x {kind}> {name} to {kind}") for name, kind in pairs]

    def _load(self, base: int, n: int | str) -> str:
        """Return a vector of lanes of a row; an operand with one value a row has it in each."""
        if self.kinds.get(base, 1) != 0:
            return super()._load(base, n)
        text, element = self.text, lane(stored_type(self.dtypes[base]))
        pointer = f"%p{self.places[base]}"
        scalar = text.op(f"load <1 x {element}>, ptr {pointer}, align 1")
        return text.shuffled(f"<1 x {element}>", scalar, "poison", [0] * text.width)

    def _prefetch(self, at: str, stride: int) -> None:
        """Prefetch nothing: the next row lies near."""


def steps_of(x: Array, shape: tuple[int, ...], space: ColumnSpace) -> Steps | None:
    """Return the steps of an array, broadcast to `shape`; None if an axis has several."""
    strides = [0] * (len(shape) - x.ndim)
    strides += [by if n > 1 else 0 for n, by in zip(x.shape, x.strides, strict=True)]
    steps: list[int] = []
    end = len(shape)
    for size in (space.lanes, space.rows, space.lead):
        start, count = end, 1
        while start and (count < size or shape[start - 1] == 1):
            start -= 1
            count *= shape[start]
        axes = [
            (n, by) for n, by in zip(shape[start:end], strides[start:end], strict=True) if n > 1
        ]
        if any(outer != n * by for (_, outer), (n, by) in itertools.pairwise(axes)):
            return None
        steps.append(axes[-1][1] if axes else 0)
        end = start
    return Steps(*steps)


def kinds_of(steps: Sequence[Steps | None], sizes: Sequence[int]) -> tuple[Kind, ...] | None:
    """Return the kinds of inputs along the lanes; None if an input has several steps."""
    kinds: list[Kind] = []
    for step, size in zip(steps, sizes, strict=True):
        if step is None:
            return None
        kinds.append(step.lane // size if step.lane in (0, size) else None)
    return tuple(kinds)


def records_of(
    space: ColumnSpace, steps: Sequence[Steps], sums: Sequence[Array], ranges: Sequence[Range]
) -> NDArray[np.int64]:
    """Return the records of a kernel for ranges of lanes, without addresses."""
    addresses = [0] * (len(steps) + len(sums))
    by = [*[step.row for step in steps], *[step.lead for step in steps]]
    by += [*[step.lane for step in steps], *[reduction.strides[0] for reduction in sums]]
    return np.array(
        [[*addresses, first, end - first, space.rows, *by] for first, end in ranges], np.int64
    )


# -- reductions of one matrix by one op


def reduction_kernel(reduction: Reduction, tile: ColumnTile) -> Kernel:
    """Return the kernel of a reduction of one matrix (see `tile_kernel`)."""
    lines: list[str] = []

    def load(vector: str) -> list[str]:
        at = f"$(getelementptr {reduction.kind}, ptr %p0, i64 %at{vector})"
        lines.append(f"  %y{vector} = load {reduction.kinds(tile.lanes)}, ptr {at}, align 1")
        return [f"%y{vector}"]

    tile_kernel(tile, 1, [reduction], lines, load)
    return Kernel(words_of("\n".join(lines)), ())


class ColumnReduction(PaidKernels[ColumnTile, Any]):
    """The kernels of reductions by one op in one dtype, by tile."""

    def __init__(self, name: str, dtype: DType) -> None:
        super().__init__(now=False)
        self.reduction = reduction_of(name, dtype.storage)
        self._jobs: dict[tuple[ColumnSpace, int], Job] = {}

    def compiled(self, kind: ColumnTile) -> Any:
        """Return the kernel of a tile."""
        return engine().Compiled(reduction_kernel(self.reduction, kind))

    def tiles(self, space: ColumnSpace, threads: int) -> tuple[ColumnTile, Sequence[Range]]:
        """Return the tiles that cover the lanes."""
        sizes = [self.reduction.dtype.itemsize]
        return tiles_of(space, threads, sizes, True, features())

    def job(self, space: ColumnSpace, threads: int, now: bool) -> Job | None:
        """Return the reduction of a contiguous array on at most some threads.

        The answer is None if LLVM fails, and unless `now`, as long as the kernel is not compiled.
        """
        size = math.prod(space) * self.reduction.dtype.itemsize
        threads = threads if size * COST.COLUMN_BYTE > COST.NATIVE_SECOND_THREAD else 1

        def bind() -> Job | None:
            tile, ranges = self.tiles(space, threads)
            if not now and tile not in self.kernels:
                if not self.why:
                    submit(self.compile, tile)
                return None
            if not (kernel := self.compile(tile)):
                return None
            records = np.array([[0, 0, *self.words(space, *lanes)] for lanes in ranges], np.int64)
            return tile_job(kernel, records, 2, space, threads)

        return lookup(self._jobs, (space, threads), bind, COST.KEPT_PLANS)

    def words(self, space: ColumnSpace, first: int, end: int) -> list[int]:
        """Return the record of a kernel for some lanes, without addresses."""
        size = self.reduction.dtype.itemsize
        row = space.lanes * size
        return [first, end - first, space.rows, row, space.rows * row, size, row]


@cache
def column_reductions(name: str, dtype: DType) -> ColumnReduction:
    """Return the reductions of this process by one op in one dtype."""
    return ColumnReduction(name, dtype)


def reduced(
    job: Job, symbol: Symbol, space: ColumnSpace, shape: tuple[int, ...], x: Array
) -> Array:
    """Return the reduction of a contiguous array by a job, in a shape."""
    result = np.full(shape, neutral(symbol), symbol.dtype.storage)
    job.run([x.ctypes.data, result.ctypes.data])
    finish_columns(symbol, space, result)
    return result


def columns_together(
    region: PlacedKernel,
    code: NativeCode,
    shape: tuple[int, ...],
    space: ColumnSpace,
    arrays: Sequence[Array],
    threads: int,
) -> Job | None:
    """Return the computation of the rows of a region, and their reductions.

    `arrays` are the operands and results of the region. The memories are theirs, and those of the
    results of the reductions. Threads take different leading elements. The rows of a block lie in
    scratch memory, except those of operands and results. The answer is None if LLVM fails, and if
    the lanes of an operand of a reduction are no neighbours.
    """
    count, places = space.lead * space.rows, len(arrays)
    sizes = [code.dtypes[register].itemsize * space.lanes for register in code.buffered]
    block_rows = max(1, COST.COLUMN_BLOCK // max(1, sum(sizes)))
    inner = places + len(code.rows)
    outer = [RowOperand(place, place) for place in range(places)]
    buffers = [RowOperand(places + k, inner + k, 0, size) for k, size in enumerate(sizes)]
    operands = [*outer, *buffers]
    kernels = [RowKernel(region, region.record, operands, region.size // count, count)]
    scratch = dict(zip(code.buffered, buffers, strict=True))
    bases = [*code.inputs, *map(code.bases.__getitem__, code.outs.values())]
    for number, (symbol, register) in enumerate(code.rows, places):
        reduction = column_reductions(symbol.op.name, symbol.dtype)
        tile, ranges = reduction.tiles(ColumnSpace(1, count, space.lanes), 1)
        kernel, size = reduction.compile(tile), reduction.reduction.dtype.itemsize
        steps = Steps(size, space.lanes * size, space.rows * space.lanes * size)
        operand = scratch.get(register)
        if operand is None:
            if code.bases[register] not in bases:
                return None
            place = bases.index(code.bases[register])
            operand, steps = outer[place], steps_of(arrays[place], shape, space)
        if kernel is None or steps is None or steps.lane != size:
            return None
        for first, end in ranges:
            words = [0, 0, *reduction.words(space, first, end)]
            words[5:7] = steps.row, steps.lead
            fold = PlacedKernel(kernel, words, (), (), count)
            both = [operand._replace(place=0), RowOperand(1, number)]
            kernels.append(RowKernel(fold, words, both, 1, count))
    ends = [0, *accumulate(-(-block_rows * size // LINE) * LINE for size in sizes)]
    block = -(-space.lead // threads) * space.rows
    table = PhaseTable(kernels, block_rows)
    return table.job(dict(enumerate(ends[:-1], inner)), ends[-1], count, block, threads)
