"""Stores: results of regions that land in slices of arrays, in place of updates of the slices.

An update of a slice by the result of a region costs a temporary and a copy. If nothing else reads
the result, the region writes it into the slice itself: the last instruction has the slice as its
memory, and all other instructions work on scratch memory. An update in place destroys old elements,
so no later instruction may read the array. A region of several blocks may read, of that array, the
very slice alone; else the first block would destroy operands of the second.

Likewise a region writes a result into the memory of an operand of the same shape that dies there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence

from graphir import ops
from graphir.runtime.program.codegen.straight import ends
from graphir.runtime.program.codegen.tracing import select
from graphir.runtime.program.cutting import VIEWS
from graphir.runtime.program.memory import Box, Store, long_axes
from graphir.runtime.program.rewrites.ownership import Memory
from graphir.runtime.program.rewrites.phases import shapes_of
from graphir.runtime.program.steps import ANY_LAYOUT, CallStep, LayoutStep, RegionStep, Step


def merge_stores(
    steps: Sequence[Step],
    outputs: Container[int],
    memory: Memory,
    is_stencil: Callable[[RegionStep], bool],
) -> list[Step]:
    """Return the steps without the updates that regions do themselves (`RegionStep.stores`).

    `outputs` are the cells of the plan's outputs. `is_stencil` says whether a region can run in
    flat memory, which is faster than instructions with strides (see flattening.py).
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
                step.adopt_stores()
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
            return (shapes_of(step) | targets).get(cell)
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
