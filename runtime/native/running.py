"""A region run by its kernel: on ranges of its elements, by any thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from runtime.native.code import NativeCode, is_mean, is_sum
from runtime.native.layout import WIDTH, Layout
from runtime.program.blocks import Operand, Uniform, laid_out
from runtime.program.memory import Lane

if TYPE_CHECKING:
    from runtime.program.steps import Cut, RegionStep, Run, Taker, Work

Array = NDArray[Any]
_EACH, _LEAST = 8, 50_000
"""Ranges for each thread, at most, and the nanoseconds that one takes, at least."""


class Task:
    """One call of a region: its kernel, where its operands lie, the nanoseconds it takes."""

    def __init__(
        self,
        code: NativeCode,
        kernel: Any,
        layout: Layout,
        step: RegionStep,
        arrays: Sequence[Array],
        cost: float,
    ) -> None:
        self.code, self.kernel, self.layout, self.step = code, kernel, layout, step
        self.arrays, self.cost = arrays, cost

    def cut(self, run: Run, threads: int) -> Cut:
        """The ranges: some for each thread, as one may be slower; at most the blocks if told of."""
        parts = 1 if threads == 1 else max(threads, min(_EACH * threads, int(self.cost / _LEAST)))
        step, unit = self.step, self.layout.inner
        parts = step.blocks if run.progress else parts
        if not step.rows and self.layout.outer:
            return Uniform(step.size, -(-step.size // unit // parts) * unit), []
        if not step.rows:
            return Uniform(step.size, _length(step.size, parts)), []
        sums = not self.code.buffered and all(is_sum(rows.symbol) for rows in step.rows)
        whole = sums and not run.progress
        return step.cut(step.size // parts + 64) if whole else (step.ranges, step.trees)

    def work(self, outs: Sequence[Array], cut: Cut, takers: Sequence[Taker]) -> Work:
        """What is done with each range."""
        (ranges, trees), code, layout = cut, self.code, self.layout
        count = len(ranges) if trees else self.step.size // self.step.length
        sums = [np.empty(count, code.dtypes[register]) for register, _ in code.sums]
        buffered = [code.dtypes[register] for register in code.buffered]
        sizes = [one.itemsize for one in (*outs, *buffered)]
        by = [0 if trees else one.itemsize for one in sums]
        record = np.array(layout.record(sizes, by, 1.0 if trees else self.step.length), np.int64)
        places = slice(layout.place(0), layout.place(len(self.arrays) + len(sizes) + len(sums)))
        operands = self._operands(takers, outs)

        def work(lane: Lane, numbers: Iterator[int]) -> None:
            mine = record.copy()
            given = [_address(one) for one in (*self.arrays, *outs)]  # which live as long as this
            for i in numbers:
                a, b = ranges[i]
                buffers = [np.empty(b - a, dtype) for dtype in buffered]
                made = [_address(one) - a * one.itemsize for one in buffers]
                found = [_address(one) + (i * one.itemsize if trees else 0) for one in sums]
                mine[places] = [*given, *made, *found]
                self.kernel.function(_address(mine), self.kernel.context, a, b)
                for taker, buffer, operand in operands:
                    taker.take(i, a, b, buffers[buffer] if operand is None else operand.block(a, b))

        self.settled = self._settled(takers, sums)
        return work

    def _settled(self, takers: Sequence[Taker], sums: Sequence[Array]) -> list[tuple[Taker, Array]]:
        places = dict(zip(self.code.sums, sums, strict=True))
        return [
            (taker, places[register, is_mean(symbol)])
            for taker, (symbol, register) in zip(takers, self.code.rows, strict=True)
            if is_sum(symbol)
        ]

    def _operands(
        self, takers: Sequence[Taker], outs: Sequence[Array]
    ) -> list[tuple[Taker, int, Operand | None]]:
        """For each taker but of sums what it gets: a buffer, or blocks of an array."""
        code = self.code
        taken = [code.bases[register] for register in code.outs.values()]
        found: list[tuple[Taker, int, Operand | None]] = []
        for taker, (symbol, register) in zip(takers, code.rows, strict=True):
            if is_sum(symbol):
                continue
            if register in code.buffered:
                found.append((taker, code.buffered.index(register), None))
                continue
            if code.bases[register] in taken:
                array = outs[taken.index(code.bases[register])].view(code.dtypes[register])
            else:
                array = self.arrays[list(code.inputs).index(register)]
            found.append((taker, 0, laid_out(array, self.step.shape, self.step.longest)))
        return found

    def settle(self) -> None:
        """Give the sums to whom they are for."""
        for taker, sums in self.settled:
            taker.settle(sums)


def _length(size: int, parts: int) -> int:
    """The elements of each range but the last, so many or fewer; all are whole vectors or more."""
    least = min(max(-(-size // parts), WIDTH), size)
    return next(each for each in range(least, size + 1) if not 0 < size % each < WIDTH)


def _address(array: Array) -> int:
    return array.ctypes.data
