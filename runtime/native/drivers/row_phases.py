"""Kernels one after another on each block of rows, in one call of machine code.

The driver `phases` reads a table: a `PhasesHead`; for each kernel a `PhaseKernel` and its operands;
and then the moves. Scratch memory has the rows of one block, so the base address in the record of a
kernel moves backwards from block to block. After a block, the rows that the next block reads again
move to the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import addressof
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime.native.drivers.records import SharedRanges, WordRecord, WordTable, record, word
from graphir.runtime.native.drivers.thread_pool import (
    OWN,
    SCRATCH,
    Driver,
    Job,
    Relocation,
    driver,
    shared_ranges,
)
from graphir.runtime.program.cost_model import PAGE
from graphir.runtime.program.tier import RowKernel, RowMove


@record
class PhasesHead(WordRecord):
    """The rows of a block, the rows by which the first kernel runs ahead, and two numbers."""

    fields = "rows ahead kernels moves"


@record
class PhaseKernel(WordRecord):
    """A kernel by addresses (0 copies rows), its elements for each row, and its lead (`RowKernel`).

    The operands that move follow, `operands` of them.
    """

    fields = "kernel context record row_elements low high first end operands"


@record
class PhaseOperand(WordRecord):
    """An operand: its word in the record, the address of its memory, its bytes for each row."""

    fields = "word memory row"


@record
class PhaseMove(WordRecord):
    """Bytes of a memory that move to its start after a block, from a distance in bytes."""

    fields = "memory distance bytes"


@record
class CopyRecord(WordRecord):
    """A copy of rows: addresses, the bytes from row to row, and the number of pieces of a row.

    The pieces follow. Without pieces all bytes are copied.
    """

    fields = "target source target_row source_row pieces"


@record
class CopyPiece(WordRecord):
    """Some bytes of a row, and where they lie in a row of the target and of the source."""

    fields = "target source bytes"


_TABLE_SPACING = 32
"""The words between the tables of two threads, which write to them: the processor moves a line of
the cache, or two, from one core to the other."""


class PlacedKernel(NamedTuple):
    """A kernel of a region, its record without addresses, and the cells of the record's operands.

    `arrays` are the inputs, the first operands, aligned. `size` is the number of elements of the
    region. `compiled` is the machine code, and `shared` says how threads share the elements.
    """

    compiled: Any
    record: Sequence[int]
    cells: Sequence[int]
    arrays: Sequence[Any]
    size: int
    shared: SharedRanges | None = None


class PhaseTable:
    """Kernels on blocks of rows, as machine code that takes the addresses of all memories."""

    def __init__(
        self, kernels: Sequence[RowKernel], rows: int, moves: Sequence[RowMove] = ()
    ) -> None:
        ahead = max([kernel.high - kernel.low for kernel in kernels], default=0)
        table, records = WordTable(), list[int]()
        table.add(PhasesHead(rows, ahead, len(kernels), len(moves)))
        starts: list[tuple[int, int]] = []
        for kernel in kernels:
            code = kernel.kernel.compiled if kernel.kernel else None
            addresses = (code.address, addressof(code.context)) if code else (0, 0)
            lead = kernel.low, kernel.high, kernel.first, kernel.end
            at = table.add(PhaseKernel(*addresses, 0, kernel.each, *lead, len(kernel.operands)))
            starts.append((at + word(PhaseKernel, "record"), len(records)))
            records += kernel.record
            for operand in kernel.operands:
                at = table.add(PhaseOperand(operand.place, operand.offset, operand.row))
                table.relocate(at + word(PhaseOperand, "memory"), operand.memory)
        for move in moves:
            at = table.add(PhaseMove(0, move.distance, move.size))
            table.relocate(at + word(PhaseMove, "memory"), move.memory)
        for position, start in starts:
            table.words[position] = 8 * (len(table.words) + start)
            table.relocate(position, OWN)
        self._kernels = kernels  # which the table has by address alone
        self._template = np.array([*table.words, *records], np.int64)
        self._positions, self._numbers = np.array(table.relocations, np.int64).reshape(-1, 2).T

    def job(
        self, inner: Mapping[int, int], scratch: int, rows: int, block: int, threads: int
    ) -> Job:
        """Return the kernels on all rows, in ranges of `block` rows, on several threads.

        `inner` has the places of memories in the scratch memory of a thread, by their numbers.
        """
        size, capacity = len(self._template), -(-scratch // PAGE) * PAGE
        tables = np.zeros((threads, size + _TABLE_SPACING), np.int64)
        tables[:, :size] = self._template
        relocations: list[Relocation] = []
        for thread, words in enumerate(tables):
            start = thread * len(words)
            for position, number in zip(self._positions, self._numbers, strict=True):
                if number == OWN:
                    words[position] += 8 * start
                elif number in inner:
                    words[position] += thread * capacity + inner[number]
                relocations.append((start + position, SCRATCH if number in inner else number))
        shared = shared_ranges(block, threads - 1)
        return Job(_driver(), tables, rows, shared, relocations, threads * capacity, alive=self)


@cache
def _driver() -> Driver:
    names = PhasesHead, PhaseKernel, PhaseOperand, PhaseMove, CopyRecord, CopyPiece
    return driver("drivers/row_phases.ll", "phases", *names)
