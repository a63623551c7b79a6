"""A region run by its kernel: on ranges of its elements, by any thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from runtime.native.code import NativeCode, is_mean, is_sum
from runtime.native.layout import Layout
from runtime.program.blocks import Operand, Uniform, laid_out
from runtime.program.memory import Lane

if TYPE_CHECKING:
    from runtime.program.steps import Cut, RegionStep, Run, Taker, Work

Array = NDArray[Any]
_EACH, _LEAST = 8, 50_000
"""Ranges for each thread, at most, and the nanoseconds that one takes, at least."""


@dataclass
class Task:
    """One call of a region: its kernel, where its operands lie, the nanoseconds it takes."""

    code: NativeCode
    kernel: Any
    layout: Layout
    step: RegionStep
    arrays: Sequence[Array]
    cost: float

    def cut(self, run: Run, threads: int) -> Cut:
        """The ranges: some for each thread, as one may be slower; at most the blocks if told of."""
        parts = 1 if threads == 1 else max(threads, min(_EACH * threads, int(self.cost / _LEAST)))
        step = self.step
        parts = step.blocks if run.progress else parts
        if not step.rows:
            return Uniform(step.size, -(-step.size // parts)), []
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
        found = dict(zip(code.sums, sums, strict=True))
        self.settled: list[tuple[Taker, Array]] = []
        operands: list[tuple[Taker, Operand | int]] = []
        for taker, (symbol, register) in zip(takers, code.rows, strict=True):
            if is_sum(symbol):
                self.settled.append((taker, found[register, is_mean(symbol)]))
            else:
                operands.append((taker, self._operand(register, outs)))

        def work(lane: Lane, numbers: Iterator[int]) -> None:
            mine = record.copy()
            given = [_address(one) for one in (*self.arrays, *outs)]  # which live as long as this
            for i in numbers:
                a, b = ranges[i]
                buffers = [np.empty(b - a, dtype) for dtype in buffered]
                made = [_address(one) - a * one.itemsize for one in buffers]
                made += [_address(one) + (i * one.itemsize if trees else 0) for one in sums]
                mine[places] = [*given, *made]
                self.kernel.function(_address(mine), self.kernel.context, a, b)
                for taker, one in operands:
                    block = buffers[one] if isinstance(one, int) else one.block(a, b)
                    taker.take(i, a, b, block)

        return work

    def _operand(self, register: int, outs: Sequence[Array]) -> Operand | int:
        """What rows are made of: blocks of an array, or which of the buffers."""
        code = self.code
        if register in code.buffered:
            return code.buffered.index(register)
        if register in code.inputs:
            array = self.arrays[list(code.inputs).index(register)]
        else:
            taken = [code.bases[one] for one in code.outs.values()]
            array = outs[taken.index(code.bases[register])].view(code.dtypes[register])
        return laid_out(array, self.step.shape, self.step.longest)

    def settle(self) -> None:
        """Give the sums to whom they are for."""
        for taker, sums in self.settled:
            taker.settle(sums)


def _address(array: Array) -> int:
    return array.ctypes.data
