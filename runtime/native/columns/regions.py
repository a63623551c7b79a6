"""Code generation: a region whose values are reduced over outer axes, without memory for them.

A tile of a few vectors goes down the rows of a matrix. The kernel computes the values of the tile
in each row, joins them with the results of the rows before, which lie in registers, and goes on
with the next row: so each result takes its rows in order, as NumPy does. All tiles pass over a part
of the rows, which the inner cache holds, before the next part.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from runtime.native.code import NativeCode
from runtime.native.regions import Kernel, Kind, ModuleWriter, stored_type
from runtime.native.rows import Reduction
from runtime.native.vectors import lane, words_of
from runtime.program.cost_model import NATIVE_VECTOR
from runtime.program.rows import ColumnSpace

Array: TypeAlias = NDArray[Any]

_PART, _ROWS = 1 << 14, 8
"""The bytes of the rows that the tiles go through one after another, and the least rows."""

_REGISTERS = 512
"""The most bytes of the results of a tile and of one value, which registers hold."""

_START = """
define void @kernel(ptr %record, ptr %context, i64 %begin, i64 %limit) {{
entry:
  put i64 1, %context[-1]
  %first = get i64, %record[{at}]
  %end = get i64, %record[{at1}]
  %each = get i64, %record[{at2}]
  %most = get i64, %record[{at3}]
{entry}
  br i1 $(icmp ult i64 %begin, %limit), label %part, label %exit
part:
  %at = phi i64 [ %begin, %entry ], [ %next, %after ]
  %inside = urem i64 %at, %each
  %lead = udiv i64 %at, %each
  %left = sub i64 %limit, %at
  %fit = call i64 @llvm.umin(i64 %most, i64 $(sub i64 %each, %inside))
  %rows = call i64 @llvm.umin(i64 %left, i64 %fit)
  %next = add i64 %at, %rows
{part}
  br label %tile{widest}"""

_TILE = """
tile{w}:
  %at{w} = phi i64 [ {start}, %{before} ], [ %end{w}, %last{w} ]
  %end{w} = add i64 %at{w}, {w}
  br i1 $(icmp ule i64 %end{w}, %end), label %load{w}, label %done{w}
load{w}:
{load}
  br label %row{w}
row{w}:
  %r{w} = phi i64 [ 0, %load{w} ], [ %next_r{w}, %joined{w} ]
{row}"""

_JOIN = """
  br label %joined{w}
joined{w}:
{joined}
  %next_r{w} = add i64 %r{w}, 1
  br i1 $(icmp ult i64 %next_r{w}, %rows), label %row{w}, label %last{w}
last{w}:
{last}
  br label %tile{w}
done{w}:
  br label %{after}"""

_END = """
after:
  br i1 $(icmp ult i64 %next, %limit), label %part, label %exit
exit:
  ret void
}"""


class ColumnKinds(NamedTuple):
    """The signature of a kernel: the kinds of the inputs along the lanes, and the reductions."""

    kinds: tuple[Kind, ...]
    reductions: tuple[str, ...]


class Steps(NamedTuple):
    """The bytes from lane to lane of an array, from row to row, and between leading elements."""

    lane: int
    row: int
    lead: int


class ColumnWriter(ModuleWriter):
    """The generator of a region with reductions of outer axes.

    The record of the kernel has the addresses of the inputs, the results and the reductions, then
    the first lane and the end, the rows for each leading element and the most rows of a part; then,
    for each input and result, the bytes from row to row and from one leading element to the next,
    and the latter for each reduction.
    """

    def __init__(self, code: NativeCode, key: ColumnKinds, features: Collection[str]) -> None:
        super().__init__(code, key.kinds, features)
        self.outs = [code.bases[register] for register in code.outs.values()]
        self.places = {base: i for i, base in enumerate((*self.kinds, *self.outs))}
        self.scratch = {}
        self.columns = [
            (code.bases[register], Reduction(name, stored_type(code.dtypes[register])))
            for (_, register), name in zip(code.rows, key.reductions, strict=True)
        ]

    def kernel(self) -> Kernel:
        """Return the whole module, with tiles of several widths."""
        size = max(each.dtype.itemsize for _, each in self.columns)
        width, lines = NATIVE_VECTOR, self.text.lines
        while width > 8 and width * size * (1 + len(self.columns)) > _REGISTERS:
            width //= 2
        lines.append(self._start(width))
        before, start = "part", "%first"
        while width:
            self._tile(width, before, start)
            before, start, width = f"done{width}", f"%at{width}", width // 2
        lines.append(_END)
        return Kernel(words_of("\n".join(lines)), tuple(self.text.context))

    def _start(self, widest: int) -> str:
        places, sums = len(self.places), len(self.columns)
        at = places + sums
        entry: list[str] = []
        part: list[str] = []
        for p in range(places):
            entry += [
                f"  %base{p} = get ptr, %record[{p}]",
                f"  %by_row{p} = get i64, %record[{at + 4 + p}]",
                f"  %by_lead{p} = get i64, %record[{at + 4 + places + p}]",
            ]
            offset = f"$(add i64 $(mul i64 %inside, %by_row{p}), $(mul i64 %lead, %by_lead{p}))"
            part.append(f"  %b{p} = getelementptr i8, ptr %base{p}, i64 {offset}")
        for k in range(sums):
            entry += [
                f"  %sums{k} = get ptr, %record[{places + k}]",
                f"  %by_sum{k} = get i64, %record[{at + 4 + 2 * places + k}]",
            ]
            offset = f"$(mul i64 %lead, %by_sum{k})"
            part.append(f"  %t{k} = getelementptr i8, ptr %sums{k}, i64 {offset}")
        names = {"entry": "\n".join(entry), "part": "\n".join(part), "widest": widest}
        return _START.format(at=at, at1=at + 1, at2=at + 2, at3=at + 3, **names)

    def _tile(self, w: int, before: str, start: str) -> None:
        """Write the loops over the tiles of a width and over the rows of a tile."""
        text, both = self.text, list(enumerate(self.columns))
        text.width = w
        load: list[str] = []
        for k, (_, each) in both:
            load.append(f"  %to{k}w{w} = getelementptr {each.kind}, ptr %t{k}, i64 %at{w}")
            load.append(f"  %old{k}w{w} = load {each.kinds(w)}, ptr %to{k}w{w}, align 1")
        row = [
            f"  %p{p}w{w} = phi ptr [ %b{p}, %load{w} ], [ %q{p}w{w}, %joined{w} ]"
            for p in self.places.values()
        ]
        for k, (_, each) in both:
            old, new = f"[ %old{k}w{w}, %load{w} ]", f"[ %new{k}w{w}, %joined{w} ]"
            row.append(f"  %x{k}w{w} = phi {each.kinds(w)} {old}, {new}")
        names = {"w": w, "load": "\n".join(load), "row": "\n".join(row)}
        text.lines.append(_TILE.format(**names, before=before, start=start))
        self.same = self._constants()
        value = self._vectors(w, self.segments[0].vectors, ())
        values = [value(base).view(each.dtype).name for base, each in self.columns]
        if w == 1:  # a reduction of one lane takes scalars
            kinds = [each.kind for _, each in self.columns]
            pairs = zip(values, kinds, strict=True)
            values = [text.op(f"bitcast <1 x {kind}> {name} to {kind}") for name, kind in pairs]
        ends = [
            f"  %q{p}w{w} = getelementptr i8, ptr %p{p}w{w}, i64 %by_row{p}"
            for p in self.places.values()
        ]
        last: list[str] = []
        for k, (_, each) in both:
            ends.append(f"  %new{k}w{w} = {each.join(f'%x{k}w{w}', values[k], w)}")
            last.append(f"  store {each.kinds(w)} %new{k}w{w}, ptr %to{k}w{w}, align 1")
        after = f"tile{w // 2}" if w > 1 else "after"
        names = {"w": w, "joined": "\n".join(ends), "last": "\n".join(last), "after": after}
        text.lines.append(_JOIN.format(**names))

    def _rows(self) -> Sequence[str]:
        return [f"w{self.text.width}"]

    def _load(self, base: int, n: int) -> str:
        """Return a vector of lanes of a row; an operand with one value a row has it in each."""
        if self.kinds.get(base, 1) != 0:
            return super()._load(base, n)
        text, element = self.text, lane(stored_type(self.dtypes[base]))
        pointer = f"%p{self.places[base]}{self.row}"
        scalar = text.op(f"load <1 x {element}>, ptr {pointer}, align 1")
        return text.shuffled(f"<1 x {element}>", scalar, "poison", [0] * text.width)

    def _prefetch(self, at: str, stride: int) -> None:
        """Prefetch nothing: the next row lies near."""


def steps_of(x: Array, shape: tuple[int, ...], space: ColumnSpace) -> Steps | None:
    """Return the steps of an array, broadcast to `shape`; None if an axis has several."""
    return _steps_of(x.shape, x.strides, shape, space)


@lru_cache(1 << 10)
def _steps_of(
    own: tuple[int, ...], by_axis: tuple[int, ...], shape: tuple[int, ...], space: ColumnSpace
) -> Steps | None:
    strides = [0] * (len(shape) - len(own))
    strides += [by if n > 1 else 0 for n, by in zip(own, by_axis, strict=True)]
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
    """Return the kinds of inputs along the lanes; None if a lane is no neighbour of the next."""
    kinds: list[Kind] = []
    for each, size in zip(steps, sizes, strict=True):
        if each is None or each.lane not in (0, size):
            return None
        kinds.append(int(each.lane != 0))
    return tuple(kinds)


def record_of(
    arrays: Sequence[Array], space: ColumnSpace, steps: Sequence[Steps], sums: Sequence[Array]
) -> NDArray[np.int64]:
    """Return the record of a kernel (see ColumnWriter) for all lanes."""
    row = sum([each.row for each in steps if each.row > 0])
    words = [x.ctypes.data for x in (*arrays, *sums)]
    words += [0, space.lanes, space.rows, max(_ROWS, _PART // max(1, row))]
    words += [each.row for each in steps]
    words += [each.lead for each in steps]
    words += [each.strides[0] for each in sums]
    return np.array(words, np.int64)
