"""Updates of arrays: in place, into slices, and of copies with as few rows as a program reads.

`mark_updates` says which updates may write into their operand instead of a copy of it. Each cell
has a root: the cell whose memory its value may share. A view has the root of its operand, and so
has the result of an update in place. An update may write into its operand if the plan owns the
memory of the root, and no later step and no output reads a cell of that root. Inputs, constants and
results of kernels that may return an operand are never owned. Memory serves values of its storage
dtype alone, which `Memory.storages` has and nothing else: steps read the bits of a cell in other
dtypes too. The body of a loop may own its carries: the loop copies them once, and then each
iteration takes memory that only the iteration before has written. Such carries are donated.

`merge_stores` lets results of regions land in slices of arrays, in place of updates of the slices.
An update of a slice by the result of a region costs a temporary and a copy. If nothing else reads
the result, the region writes it into the slice itself: the last instruction has the slice as its
memory, and all other instructions work on scratch memory. An update in place destroys old elements,
so no later instruction may read the array. A region of several blocks may read, of that array, the
very slice alone; else the first block would destroy operands of the second. Likewise a region
writes a result into the memory of an operand of the same shape that dies there.

`read_inputs` and `limit_copies` let a program that writes into an input copy only the rows (indices
of the first axis) that it has to. A program never changes its inputs, so the first update of an
input makes a copy. But a slice of rows that no update has written so far is also a slice of the
input itself. Rows that the updates write before anything reads them need no copy either. A solver
that goes over all rows once then writes its results into new memory, and copies next to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.runtime.program.codegen.straight import ends
from graphir.runtime.program.codegen.tracing import Storage, select
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import UPDATES, VIEWS
from graphir.runtime.program.memory import Box, Store, long_axes
from graphir.runtime.program.region_steps import ANY_LAYOUT, RegionStep
from graphir.runtime.program.steps import CallStep, LayoutStep, Step

FRESH = UPDATES | {
    *(ops.gather, ops.take_along, ops.scatter, ops.concat, ops.stack, ops.pad),
    *(ops.full, ops.range, ops.eye, ops.item),
    *(op for op in ops.CATALOGUE.values() if op.kind in ("contraction", "reduction", "rowwise")),
}
"""The ops whose kernels always return new memory."""


RESHAPES = frozenset({ops.reshape, ops.rebind, ops.squeeze, ops.unsqueeze})
"""The views of a contiguous operand that are contiguous themselves."""


def donated_carries(
    steps: Sequence[Step],
    outputs: Container[int],
    carries: Sequence[tuple[int, int]],
    storages: Sequence[Storage | None],
) -> frozenset[int]:
    """Return the inputs of a plan whose memory the plan may write to.

    `carries` are pairs of cells: that of an input, and that of the output which is this input of
    the next iteration. An input is donated if each iteration leaves it an array of its own.
    `storages` are those of `Memory`.
    """
    donated = frozenset([source for source, _ in carries])
    while donated:
        memory = mark_updates(steps, outputs, storages, donated)
        roots = Counter([memory.roots.get(target, target) for _, target in carries])
        exclusive = frozenset(
            source
            for source, target in carries
            if source in donated
            and memory.serves(target, source)
            and roots[memory.roots[target]] == 1
        )
        if exclusive == donated:
            break
        donated = exclusive
    return donated


def mark_updates(
    steps: Sequence[Step],
    outputs: Container[int],
    storages: Sequence[Storage | None],
    donated: Iterable[int] = (),
) -> Memory:
    """Set `in_place` of each update of a plan that may write into its operand.

    `outputs` are the cells of the plan's outputs, and `donated` the inputs whose memory the plan
    owns. `storages` are those of `Memory`. The result is the memory of the cells.
    """
    last = {cell: number for number, step in enumerate(steps) for cell in step.reads}
    memory = Memory(storages)
    latest = memory.latest
    for cell in donated:
        memory.enter_fresh([cell])
        latest[cell] = float("inf") if cell in outputs else last.get(cell, -1)
    for number, step in enumerate(steps):
        if isinstance(step, CallStep):
            if step.symbol.op in UPDATES:
                source = step.reads[0]
                is_free = memory.serves(source, step.write)
                step.in_place = is_free and latest[memory.roots[source]] <= number
            memory.enter_call(step)
        elif isinstance(step, LayoutStep):
            continue
        else:
            memory.enter_fresh(step.results)
        results: Iterable[int] = step.results
        for cell in results:
            root = memory.roots.get(cell, cell)
            read = float("inf") if cell in outputs else last.get(cell, number)
            latest[root] = max(latest.get(root, number), read)
    return memory


class Memory:
    """The roots of cells, the contiguous cells in memory that a step made, and shared roots.

    `storages` has the dtype of the array in each cell, or None for a cell without an array.
    `latest` has, for each root, the number of the last step that reads a cell of that root; it is
    infinite if an output has the root.
    """

    def __init__(self, storages: Sequence[Storage | None]) -> None:
        self.storages = storages
        self.roots: dict[int, int] = {}
        self.latest: dict[int, float] = {}
        self.contiguous: set[int] = set()
        self.shared: set[int] = set()

    def owns(self, cell: int) -> bool:
        """Whether a cell is a contiguous array in memory that nothing outside of the plan reads."""
        return cell in self.contiguous and self.roots[cell] not in self.shared

    def serves(self, donor: int, cell: int) -> bool:
        """Whether the value of a cell may lie in the memory of another cell."""
        return self.owns(donor) and self.has_storage_of(donor, cell)

    def has_storage_of(self, donor: int, cell: int) -> bool:
        """Whether two cells have arrays of one dtype."""
        storage = self.storages[donor]
        return storage is not None and storage == self.storages[cell]

    def enter_fresh(self, cells: Iterable[int]) -> None:
        """Note new memory for each cell."""
        for cell in cells:
            self.roots[cell] = cell
            self.contiguous.add(cell)

    def enter_call(self, step: CallStep) -> None:
        """Note the memory of the result of a call."""
        op, cell = step.symbol.op, step.write
        if not (op in VIEWS or step.in_place):
            if op in FRESH:
                self.enter_fresh([cell])
            else:  # the kernel may return an operand, or keep it
                self.shared.update([self.roots.get(read, read) for read in step.reads])
            return
        source = step.reads[0]
        self.roots[cell] = self.roots.get(source, source)
        if source in self.contiguous and (step.in_place or op in RESHAPES):
            self.contiguous.add(cell)


def merge_stores(
    steps: Sequence[Step],
    outputs: Container[int],
    memory: Memory,
    is_stencil: Callable[[RegionStep], bool],
) -> list[Step]:
    """Return the steps without the updates that regions do themselves (`RegionStep.stores`).

    `outputs` are the cells of the plan's outputs. `is_stencil` says whether a region can run in
    flat memory, which is faster than instructions with strides (see operand_layouts.py).
    """
    merger = _Merger(steps, outputs, memory, is_stencil)
    for number, step in enumerate(steps):
        if isinstance(step, CallStep) and step.symbol.op is ops.slice_update and step.fits:
            merger.merge(number, step)
    for number, step in enumerate(steps):
        if isinstance(step, RegionStep):
            for index in range(len(step.writes)):
                merger.reuse_operand(number, step, index)
            if step.stores:
                step.write_into_slices()
    return [step for number, step in enumerate(steps) if number not in merger.places]


class _Merger:
    """The state of `merge_stores`.

    `places` has the numbers of the steps that regions do themselves, with the numbers of the steps
    of these regions.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        outputs: Container[int],
        memory: Memory,
        is_stencil: Callable[[RegionStep], bool],
    ) -> None:
        self.steps, self.memory, self.is_stencil = steps, memory, is_stencil
        self.places: dict[int, int] = {}
        self._donated: dict[int, int] = {}
        self._calls = {step.write: step for step in steps if isinstance(step, CallStep)}
        self._writer = {cell: n for n, step in enumerate(steps) for cell in ends(step)[1]}
        uses = Counter([cell for step in steps for cell in step.reads])
        self._single = {cell for cell, count in uses.items() if count == 1 and cell not in outputs}

    def merge(self, number: int, update: CallStep) -> None:
        """Let a region do an update of a slice itself if it can."""
        array, result = update.reads
        numbers = [number]
        view = self._calls.get(result)
        while view and view.symbol.op is ops.reshape and result in self._single:
            numbers.append(self._writer[result])
            (result,) = view.reads
            view = self._calls.get(result)
        place = self._writer.get(result, -1)
        region = self.steps[place]
        if place < 0 or result not in self._single or not isinstance(region, RegionStep):
            return
        indices = [k for k, (cell, _) in enumerate(region.writes) if cell == result]
        if not indices or not self._is_movable(number, place, update):
            return
        store = Store(array, update.write, update.box, update.shape, update.in_place)
        if self._is_storable(region, indices[0], store):
            self.places |= dict.fromkeys(numbers, place)
            region.stores[indices[0]] = store

    def _is_movable(self, number: int, place: int, update: CallStep) -> bool:
        """Whether an update can happen at the place of an earlier step."""
        array = update.reads[0]
        writer = self._writer.get(array, -1)
        if self.places.get(writer, writer) > place or writer == place:
            return False
        between = [k for k in range(place + 1, number) if k not in self.places]
        return not update.in_place or not any(self._reads(self.steps[k], array) for k in between)

    def reuse_operand(self, number: int, region: RegionStep, index: int) -> None:
        """Give a result of a region the memory of an operand that dies there, if there is one."""
        cell, memory = region.writes[index][0], self.memory
        if index in region.stores or not region.shape:
            return
        for donor in sorted({donor for _, donor, _ in region.ins}):
            root = self._root(donor)
            if (
                self._shape(donor) != region.shape
                or not memory.serves(donor, cell)
                or memory.latest.get(root, 0) > number
                or self._is_target(region, root)
            ):
                continue
            box = Box((0,) * len(region.shape), region.shape, (1,) * len(region.shape))
            store = Store(donor, cell, box, region.shape, True)
            if self._is_storable(region, index, store):
                region.stores[index] = store
                self._donated[self._root(cell)] = root
                memory.latest[root] = memory.latest.get(cell, number)
                return

    def _shape(self, cell: int) -> tuple[int, ...] | None:
        """Return the shape of a cell that a step writes; None for others."""
        step = self.steps[self._writer[cell]] if cell in self._writer else None
        if isinstance(step, RegionStep):
            targets = {store.target: store.shape for store in step.stores.values()}
            return (step.result_shapes | targets).get(cell)
        return step.shape if isinstance(step, (CallStep, LayoutStep)) else None

    def _is_target(self, region: RegionStep, root: int) -> bool:
        return any(self._root(store.target) == root for store in region.stores.values())

    def _root(self, cell: int) -> int:
        """Return the cell whose memory a cell may share."""
        root = self.memory.roots.get(cell, cell)
        while root in self._donated:
            root = self._donated[root]
        return root

    def _reads(self, step: Step, array: int) -> bool:
        """Whether a step reads the memory of an array."""
        cells = list(step.reads)
        if isinstance(step, RegionStep):
            cells += [store.source for store in step.stores.values()]
        return any(self._root(cell) == self._root(array) for cell in cells)

    def _is_part(self, cell: int, store: Store) -> bool:
        """Whether a cell is the very slice, or the whole array, that a store writes."""
        view = self._calls.get(cell)
        if store.box.shape == store.shape and (view is None or view.symbol.op not in VIEWS):
            return True
        if view is None or view.symbol.op is not ops.slice or view.box != store.box:
            return False
        source = self._calls.get(view.reads[0])
        return source is None or source.symbol.op not in VIEWS

    def _is_storable(self, region: RegionStep, index: int, store: Store) -> bool:
        """Whether a region may write a result into the slice of a store."""
        if region.rows or long_axes(region.shape) != long_axes(store.box.shape):
            return False
        if not self.memory.has_storage_of(store.source, region.writes[index][0]):
            return False
        slots, calls = region.body.slots, region.body.calls
        own = {k for k, slot in enumerate(slots) if (slot.kind, slot.number) == ("out", index)}
        last = max([n for n, (_, args, _) in enumerate(calls) if args[-1] in own])
        function, args, _ = calls[last]
        after = calls[last + 1 :]
        readers = [function, *[call for call, operands, _ in after if own.intersection(operands)]]
        is_complex = any(slots[k].dtype.kind == "c" for k in own)
        if not store.is_contiguous and (
            is_complex
            or not ANY_LAYOUT.issuperset(readers)
            or (region.blocks == 1 and self.is_stencil(region))
        ):
            return False
        if not store.in_place:
            return store.source not in [other.target for other in region.stores.values()]
        if is_complex and region.size == 1:
            return False
        root = self._root(store.source)
        for other in region.stores.values():
            if self._root(other.target) == root and not store.box.is_disjoint(other.box):
                return False
        shared = {k: cell for k, cell, _ in region.ins if self._root(cell) == root}
        if any(shared.keys() & operands for _, operands, _ in after):
            return False
        if function is select and shared.keys() & args:
            return False
        return region.blocks == 1 or all(self._is_part(cell, store) for cell in shared.values())


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
