"""A region run by its kernel: on ranges of its elements, by any thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import c_int64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from runtime.native.code import is_mean, is_sum
from runtime.program.blocks import Operand, laid_out
from runtime.program.memory import Lane

if TYPE_CHECKING:
    from runtime.native.kernels import Kernels
    from runtime.program.steps import Cut, RegionStep, Run, Taker, Work

Array = NDArray[Any]
_EACH, _LEAST = 8, 50_000
"""Ranges for each thread, at most, and the nanoseconds that one takes, at least."""


@dataclass
class Task:
    """One call of a region: its kernel, the record for it, and the inputs as it reads them."""

    kernels: Kernels
    kernel: Any
    record: Sequence[int]
    step: RegionStep
    arrays: Sequence[Array]

    def cut(self, run: Run, threads: int) -> Cut:
        """The ranges: some for each thread, as one may be slower; the blocks if told of them."""
        step = self.step
        if run.progress or not all(is_sum(rows.symbol) for rows in step.rows):
            return step.ranges, step.trees
        most = min(_EACH * threads, int(step.size * self.kernels.cost / _LEAST))
        return step.cut(step.size // (1 if threads == 1 else max(threads, most)) + 64)

    def work(self, outs: Sequence[Array], cut: Cut, takers: Sequence[Taker]) -> Work:
        """What is done with each range."""
        (ranges, trees), step, code, kernel = cut, self.step, self.kernels.code, self.kernel
        count = len(ranges) if trees else step.size // step.length
        sums = {one: np.empty(count, code.dtypes[one[0]]) for one in code.sums}
        lies = dict(zip(code.inputs, self.arrays, strict=True))
        lies |= zip([code.bases[one] for one in code.outs.values()], outs, strict=True)
        read: list[tuple[Taker, int, Operand | None]] = []
        for taker, (symbol, register) in zip(takers, code.rows, strict=True):
            if is_sum(symbol):
                taker.expect(sums[register, is_mean(symbol)])
                continue
            array, dtype = lies.get(code.bases[register]), code.dtypes[register]
            found = None if array is None else laid_out(array.view(dtype), step.shape, step.longest)
            read.append((taker, register, found))
        given = [_address(one) for one in (*self.arrays, *outs)]
        summed = [(_address(one), one.itemsize) for one in sums.values()]

        def work(lane: Lane, numbers: Iterator[int]) -> None:
            record = (c_int64 * len(self.record))(*self.record)
            for i in numbers:
                a, b = ranges[i]
                made = {one: np.empty(b - a, code.dtypes[one]) for one in code.buffered}
                leaf = i - a // step.length if trees else 0
                bases = given + [_address(one) - a * one.itemsize for one in made.values()]
                bases += [base + leaf * size for base, size in summed]
                record[: len(bases)] = bases
                kernel.function(record, kernel.context, a, b)
                for taker, register, operand in read:
                    taker.take(i, a, b, operand.block(a, b) if operand else made[register])

        return work


def _address(array: Array) -> int:
    return array.ctypes.data
