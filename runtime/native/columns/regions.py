"""Code generation: a region whose values are reduced over outer axes, without memory for them.

A tile goes down the rows of the matrix (see `tiles`). In each row the kernel computes the values of
the tile and joins them with the results of the rows before.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.code import NativeCode
from graphir.runtime.native.columns.tiles import ColumnTile, reduction_of, tile_kernel
from graphir.runtime.native.regions import Kernel, Kind, ModuleWriter
from graphir.runtime.native.vectors import lane, stored_type, words_of
from graphir.runtime.program.blocks import Range
from graphir.runtime.program.rows import ColumnSpace

Array: TypeAlias = NDArray[Any]


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
        text, reductions = self.text, [each for _, each in self.columns]
        text.width = self.tile.lanes
        self.same = self._constants()
        tile_kernel(self.tile, len(self.places), reductions, text.lines, self._values)
        marked = "entry:\n  put i64 1, %context[-1]"
        lines = "\n".join(text.lines).replace("entry:", marked, 1)
        return Kernel(words_of(lines), tuple(text.context))

    def _values(self, vector: str) -> Sequence[str]:
        """Write the values of a vector of a row, and return those that are reduced."""
        text, kinds = self.text, [each.kind for _, each in self.columns]
        value = self._vectors(vector, self.segments[0].vectors, ())
        values = [value(base).view(each.dtype).name for base, each in self.columns]
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
    """Return the kinds of inputs along the lanes; None if an input has several steps."""
    kinds: list[Kind] = []
    for each, size in zip(steps, sizes, strict=True):
        if each is None:
            return None
        kinds.append(each.lane // size if each.lane in (0, size) else None)
    return tuple(kinds)


def records_of(
    space: ColumnSpace, steps: Sequence[Steps], sums: Sequence[Array], ranges: Sequence[Range]
) -> NDArray[np.int64]:
    """Return the records of a kernel for ranges of lanes, without addresses."""
    addresses = [0] * (len(steps) + len(sums))
    by = [*[each.row for each in steps], *[each.lead for each in steps]]
    by += [*[each.lane for each in steps], *[each.strides[0] for each in sums]]
    return np.array(
        [[*addresses, first, end - first, space.rows, *by] for first, end in ranges], np.int64
    )
