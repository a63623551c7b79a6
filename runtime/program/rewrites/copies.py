"""Copies of inputs: a program that writes into an input copies only the rows that it has to.

A program never changes its inputs, so the first update of an input makes a copy. But a slice of
rows that no update has written so far is also a slice of the input itself (`read_inputs`). Rows
that the updates write before anything reads them need no copy either (`limit_copies`). A solver
that goes over all rows once then writes its results into new memory, and copies next to nothing.

Rows are indices of the first axis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import Store
from graphir.runtime.program.steps import CallStep, RegionStep, Step

Mask = NDArray[np.bool_]


def read_inputs(steps: Sequence[Step], inputs: Collection[int]) -> None:
    """Let slices and items of an updated input read the input if no update has written their rows.

    `inputs` are the cells of the plan's inputs.
    """
    origins: dict[int, tuple[int, Mask]] = {}
    for step in steps:
        if not (isinstance(step, CallStep) and step.reads and step.fits):
            continue
        op, source = step.symbol.op, step.reads[0]
        if op is ops.slice_update and step.shape and (source in origins or source in inputs):
            # The versions of an array share a mask. It has later updates too, which is safe.
            entry = origins.get(source) or (source, np.zeros(step.shape[0], bool))
            origins[step.write] = entry
            entry[1][step.box.rows] = True
        elif op in (ops.slice, ops.item) and source in origins:
            origin, rows = origins[source]
            if not rows[_rows_read(step)].any():
                step.reads = [origin]


def limit_copies(steps: Sequence[Step], outputs: Collection[int]) -> None:
    """Let an update that copies its array keep only the rows that are read before any update.

    `outputs` are the cells of the plan's outputs.
    """
    arrays: dict[int, _Copy] = {}
    copies: list[tuple[Step, int | None, _Copy]] = []
    for step in steps:
        for cell, rows in _reads(step):
            if cell in arrays:
                arrays[cell].read(rows)
        for index, store in _updates(step):
            copy = arrays.get(store.source) if store.in_place else None
            if not store.in_place:
                copy = _Copy(store.shape[0])
                copies.append((step, index, copy))
            if copy:
                arrays[store.target] = copy
                copy.write(store)
    for cell in arrays.keys() & outputs:
        arrays[cell].read(slice(None))
    for step, index, copy in copies:
        copied_rows = copy.copied_rows
        if copied_rows is not None and isinstance(step, RegionStep) and index is not None:
            step.stores[index] = step.stores[index]._replace(copied_rows=copied_rows)
        elif copied_rows is not None and isinstance(step, CallStep):
            step.copied_rows = copied_rows


class _Copy:
    """The rows of a copy: those that an update has written as a whole, and those read before."""

    def __init__(self, size: int) -> None:
        self._updated_rows = np.zeros(size, bool)
        self._read_rows = np.zeros(size, bool)

    def read(self, rows: slice) -> None:
        """Note that a step reads rows."""
        self._read_rows[rows] |= ~self._updated_rows[rows]

    def write(self, store: Store) -> None:
        """Note that a step updates a slice."""
        _, *others = zip(*store.box, store.shape, strict=True)
        if all(start == 0 and stop == size and by == 1 for start, stop, by, size in others):
            self._updated_rows[store.box.rows] = True

    @property
    def copied_rows(self) -> tuple[slice, ...] | None:
        """The rows that the copy has to have; None if it may as well have all."""
        edges = np.flatnonzero(np.diff(self._read_rows, prepend=False, append=False))
        if 2 * self._read_rows.sum() > len(self._read_rows) or len(edges) > 2 * COST.COPIED_RUNS:
            return None
        return tuple([slice(first, end) for first, end in edges.reshape(-1, 2).tolist()])


def _updates(step: Step) -> Iterator[tuple[int | None, Store]]:
    """Yield the updates of slices that a step does, with the numbers of the region's results."""
    if isinstance(step, RegionStep):
        yield from [item for item in step.stores.items() if item[1].shape]
    elif isinstance(step, CallStep) and _is_update(step):
        yield None, Store(step.reads[0], step.write, step.box, step.shape, step.in_place)


def _is_update(step: CallStep) -> bool:
    return step.symbol.op is ops.slice_update and step.fits and bool(step.shape)


def _reads(step: Step) -> Iterator[tuple[int, slice]]:
    """Yield the cells that a step reads, with rows; an update in place does not read its array."""
    cells: Sequence[int] = step.reads
    if isinstance(step, CallStep) and step.fits and step.symbol.op in (ops.slice, ops.item):
        yield step.reads[0], _rows_read(step)
        return
    if isinstance(step, CallStep) and _is_update(step) and step.in_place:
        cells = step.reads[1:]
    elif isinstance(step, RegionStep):
        copied = [store.source for store in step.stores.values() if not store.in_place]
        cells = [*step.operands, *copied]
    yield from [(cell, slice(None)) for cell in cells]


def _rows_read(step: CallStep) -> slice:
    """Return the rows that a slice or an item reads."""
    if not step.source_shape:
        return slice(None)
    if step.symbol.op is ops.slice:
        return step.box.rows
    row = step.settings["index"][0]
    return slice(row, row + 1)
