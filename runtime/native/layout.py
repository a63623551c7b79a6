"""How operands lie along the rows of a result: what a kernel is told of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from runtime.native.regions import KINDS, Kind
from runtime.native.rows import HEAD, WIDTH

_ROW, _LAYOUTS = 1024, 1024
Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Operand: TypeAlias = tuple[Shape, Shape, int]
"""The shape of an operand, its strides and the size of an element."""


class Layout(NamedTuple):
    """Rows of `inner` elements, along `outer` axes; of each input the kind and strides in bytes.

    `steps` are those along the outer axes; axes are listed from the last to the first.
    """

    inner: int
    outer: tuple[int, ...]
    kinds: tuple[Kind, ...]
    strides: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]

    def record(self, results: Sequence[int], sums: Sequence[int], divisor: float) -> list[int]:
        """What a kernel is told, in words: this, results and sums by their sizes in bytes.

        The axes, that of the rows too; what sums are divided by (a double); the bases of all
        places, to be filled in; for each axis its size and the strides of the places along it.
        """
        bits = int(np.float64(divisor).view(np.int64))
        words = [1 + len(self.outer), bits]
        words += [0] * (len(self.strides) + len(results) + len(sums))
        elements = 1
        for size, steps in ((self.inner, self.strides), *zip(self.outer, self.steps, strict=True)):
            words += [size, *steps, *[one * elements for one in results]]
            words += [one * (elements // self.inner) for one in sums]
            elements *= size
        return words

    def place(self, index: int) -> int:
        """The word of a record that has the base of a place."""
        return HEAD + index


def contiguous(shape: Shape, size: int) -> Shape:
    """The strides of an array in C order."""
    return tuple([size * math.prod(shape[i + 1 :]) for i in range(len(shape))])


@lru_cache(_LAYOUTS)
def laid(shape: Shape, axes: int, operands: tuple[Operand, ...], short: int = 1) -> Layout | None:
    """The layout of operands of a result in C order, the last `axes` of which are one row.

    None where more than `short` rows are less than a vector, or where the last axes are not one of
    all operands.
    """
    strides = [
        [0] * (len(shape) - len(own)) + [by * (n != 1) for n, by in zip(own, steps, strict=True)]
        for own, steps, _ in operands
    ]
    lead = len(shape) - axes
    inside = _merged(shape, strides, range(lead if axes else 0, len(shape)))
    outside = _merged(shape, strides, range(lead if axes else 0))
    if not inside:
        inside = [(1, [0] * len(operands))]
    if axes and len(inside) > 1:
        return None
    (inner, bys), *rest = inside
    outer = [*rest, *outside]
    kinds = tuple([_kind(inner, by, *one) for by, one in zip(bys, operands, strict=True)])
    sizes, steps = tuple([size for size, _ in outer]), tuple([tuple(by) for _, by in outer])
    if inner < WIDTH and math.prod(sizes) > short:
        return None
    return Layout(inner, sizes, kinds, tuple(bys), steps)


def _merged(
    shape: Shape, strides: Sequence[Sequence[int]], axes: range
) -> list[tuple[int, list[int]]]:
    """Axes, from the last to the first, neighbours that are one for all operands made one."""
    found: list[tuple[int, list[int]]] = []
    for k in reversed(axes):
        size, steps = shape[k], [one[k] for one in strides]
        if found and steps == [found[-1][0] * by for by in found[-1][1]]:
            found[-1] = found[-1][0] * size, found[-1][1]
        elif size != 1:
            found.append((size, steps))
    return found


def _kind(inner: int, stride: int, own: Shape, _: Shape, size: int) -> Kind:
    if inner == 1:
        return 1 if own else 0  # as for more elements
    found = stride // size
    return found if stride == found * size and found in KINDS else None


def prepared(
    shape: Shape, axes: int, arrays: Sequence[Array]
) -> tuple[Layout | None, Sequence[Array]]:
    """A layout of arrays, which are copied where they have none as they are.

    Of rows that are short, several are one, with what is the same in each repeated.
    """
    whole = [one if one.flags.aligned else one.copy() for one in arrays]
    found = laid(shape, axes, tuple(map(operand_of, whole)))
    if found is not None:
        return found, whole
    periods = [0 if axes else _period(shape, one) for one in whole]
    longest = max(periods, default=0)
    row = longest and longest * -(-_ROW // longest)
    rows = (-(-math.prod(shape) // row), row) if row else shape
    operands: list[Operand] = []
    for i, (one, period) in enumerate(zip(whole, periods, strict=True)):
        if period:
            whole[i] = np.tile(one.reshape(-1), row // period)
        elif one.size != 1:
            whole[i] = np.ascontiguousarray(np.broadcast_to(one, shape))
        own = rows, contiguous(rows, one.itemsize), one.itemsize
        operands.append(operand_of(whole[i]) if period or one.size == 1 else own)
    return laid(rows, axes, tuple(operands)), whole


def operand_of(array: Array) -> Operand:
    """An array as an operand."""
    return array.shape, array.strides, array.itemsize


def _period(shape: Shape, array: Array) -> int:
    """The elements after which a broadcast operand repeats, if they are few; else 0."""
    own = array.shape
    while own and own[0] == 1:
        own = own[1:]
    repeats = len(own) < len(shape) and own == shape[len(shape) - len(own) :]
    return array.size if repeats and 1 < array.size <= _ROW else 0
