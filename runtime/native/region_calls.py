"""Calls of a kernel on ranges of elements that threads take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import c_int64
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from graphir.hints import Array
from graphir.runtime.native.drivers.thread_pool import Job, job_of_calls, shared_ranges
from graphir.runtime.native.instruction_selection import is_reduced
from graphir.runtime.program.blocks import Operand, Range, laid_out
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import Workspace, lookup
from graphir.runtime.program.region_steps import RegionStep

if TYPE_CHECKING:
    from graphir.runtime.native.engine import Compiled
    from graphir.runtime.native.kernels import Kernels
    from graphir.runtime.program.region_steps import Partition, Work
    from graphir.runtime.program.rows import RowConsumer
    from graphir.runtime.program.steps import ScalarStep

    AnyStep: TypeAlias = RegionStep | ScalarStep


@dataclass
class KernelCall:
    """One call of a region: the kernel, its record, and the inputs in the form that it reads.

    `threads` is the number of threads of machine code that take all ranges; 0 if Python hands the
    ranges out.
    """

    kernels: Kernels
    kernel: Compiled
    record: Sequence[int]
    step: RegionStep
    arrays: Sequence[Array]
    threads: int = 0

    @property
    def has_threads(self) -> bool:
        """Whether one call of `work` computes all ranges, on threads of machine code."""
        return self.threads > 0

    def cut(self, threads: int) -> Partition:
        """Return the ranges of elements, and the summation trees of long rows.

        If NumPy computes some rows, the ranges are the step's blocks. Else machine code hands them
        out, if there are several threads.
        """
        step = self.step
        if not all(is_reduced(rows.symbol) for rows in step.rows):
            return step.ranges, step.trees
        self.threads = threads if threads > 1 else 0
        return self.kernels.cut(step, threads)

    def work(
        self, outs: Sequence[Array], partition: Partition, consumers: Sequence[RowConsumer]
    ) -> Work:
        """Return the function by which a thread runs the kernel on its ranges."""
        (ranges, trees), step, code, kernel = partition, self.step, self.kernels.code, self.kernel
        count = len(ranges) if trees else step.size // step.length
        sums = {reduction: np.empty(count, code.sum_dtype(*reduction)) for reduction in code.sums}
        operands = dict(zip(code.inputs, self.arrays, strict=True))
        operands |= zip(
            [code.bases[register] for register in code.outs.values()], outs, strict=True
        )
        row_reads: list[tuple[RowConsumer, int, Operand | None]] = []
        for consumer, (symbol, register) in zip(consumers, code.rows, strict=True):
            if is_reduced(symbol):
                consumer.expect(sums[register, symbol.op.name])
                continue
            array, dtype = operands.get(code.bases[register]), code.dtypes[register]
            operand_laid = (
                None if array is None else laid_out(array.view(dtype), step.shape, step.longest)
            )
            row_reads.append((consumer, register, operand_laid))
        addresses = [address_of(array) for array in (*self.arrays, *outs)]
        sum_addresses = [(address_of(array), array.itemsize) for array in sums.values()]
        if self.has_threads:
            return self._share(addresses, sum_addresses, partition)

        def work(workspace: Workspace, numbers: Iterator[int]) -> None:
            record = (c_int64 * len(self.record))(*self.record)
            buffers: dict[int, Array] = {}
            for i in numbers:
                a, b = ranges[i]
                if any(buffer.size < b - a for buffer in buffers.values()) or not buffers:
                    buffers = {
                        register: np.empty(b - a, code.dtypes[register])
                        for register in code.buffered
                    }
                leaf = i - a // step.length if trees else 0
                bases = addresses + [
                    address_of(buffer) - a * buffer.itemsize for buffer in buffers.values()
                ]
                bases += [base + leaf * size for base, size in sum_addresses]
                record[: len(bases)] = bases
                kernel.function(record, kernel.context, a, b)
                for consumer, register, operand in row_reads:
                    consumer.take(
                        i, a, b, operand.block(a, b) if operand else buffers[register][: b - a]
                    )

        return work

    def _share(
        self,
        addresses: Sequence[int],
        sums: Sequence[tuple[int, int]],
        partition: Partition,
    ) -> Work:
        """Return the function by which threads of machine code run the kernel on all ranges.

        `sums` are the addresses of the reductions, and the bytes of an element of each.
        """
        (ranges, trees), step, kernel = partition, self.step, self.kernel
        places = [*addresses, *[base for base, _ in sums]]
        rest = tuple(self.record[len(places) :])
        key = kernel, step.shape, bool(trees), len(ranges), self.threads, rest

        def bind() -> Job:
            if trees:
                sizes = [size for _, size in sums]
                record, count = self.record, len(addresses)
                return job_of_leaves(kernel, record, count, sizes, step, ranges, self.threads)
            shared = self.kernels.shared(step) or shared_ranges(ranges[0][1], self.threads - 1)
            words = np.array([*[0] * len(places), *rest], np.int64)
            relocations = [(place, place) for place in range(len(places))]
            return Job(kernel, words, step.size, shared, relocations)

        job = lookup(self.kernels.jobs, key, bind, COST.KEPT_PLANS)
        assert job
        return lambda workspace, numbers: job.run(places)


def job_of_leaves(
    kernel: Compiled,
    record: Sequence[int],
    count: int,
    sizes: Sequence[int],
    step: RegionStep,
    ranges: Sequence[Range],
    threads: int,
) -> Job:
    """Return the reductions of parts of rows, each of which has an element of the results.

    The memories are `count` operands, and then the results, of elements of `sizes` bytes.
    """
    places = count + len(sizes)
    records = np.tile(np.array([*[0] * places, *record[places:]], np.int64), (len(ranges), 1))
    leaves = np.arange(len(ranges)) - [a // step.length for a, _ in ranges]
    records[:, count:places] = leaves[:, None] * np.array(sizes)
    return job_of_calls(kernel, records, places, ranges, threads)


def address_of(array: Array) -> int:
    """Return the address of the first element of an array."""
    return array.ctypes.data
