"""Stores: results of regions that land in slices of arrays, in place of updates of the slices.

An update of a slice by the result of a region costs a temporary and a copy. If nothing else reads
the result, the region writes it into the slice itself: the last instruction has the slice as its
memory, and all other instructions work on scratch memory. An update in place destroys old elements,
so no later instruction may read the array. A region of several blocks may read, of that array, the
very slice alone; else the first block would destroy operands of the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from graphir import ops
from runtime.program.codegen.straight import Step, ends
from runtime.program.codegen.tracing import select
from runtime.program.cutting import VIEWS
from runtime.program.steps import CHEAP, CallStep, RegionStep


def merge_stores(
    steps: Sequence[Step], outputs: Container[int], roots: Mapping[int, int]
) -> list[Step]:
    """Return the steps without the updates that regions do themselves (`RegionStep.stores`).

    `outputs` are the cells of the plan's outputs, `roots` the roots of cells (see ownership.py).
    """
    regions = {
        cell: (number, step)
        for number, step in enumerate(steps)
        if isinstance(step, RegionStep)
        for cell, _ in step.writes
    }
    if not regions:
        return list(steps)
    uses = Counter([cell for step in steps for cell in step.reads])
    places = _Places(steps, roots)
    merged: dict[int, int] = {}
    for number, step in enumerate(steps):
        if not isinstance(step, CallStep) or step.symbol.op is not ops.slice_update:
            continue
        array, updates = step.reads
        place, region = regions.get(updates, (0, None))
        if not region or not step.fits or uses[updates] > 1 or updates in outputs:
            continue
        written = places.writer.get(array, -1)
        if merged.get(written, written) > place or (written == place and written not in merged):
            continue
        between = [k for k in range(place + 1, number) if k not in merged]
        if step.in_place and any(places.reads(steps[k], array) for k in between):
            continue
        if _is_storable(region, step, places):
            merged[number] = place
            region.stores[[cell for cell, _ in region.writes].index(updates)] = step
    for region in {id(region): region for _, region in regions.values()}.values():
        if region.stores:
            region.adopt_stores()
    return [step for number, step in enumerate(steps) if number not in merged]


class _Places:
    """The memory that cells read: its root, and the slice of the root if the cell is a slice.

    `writer` has the number of the step that writes each cell.
    """

    def __init__(self, steps: Sequence[Step], roots: Mapping[int, int]) -> None:
        self.roots = roots
        self.writer: dict[int, int] = {}
        self._calls: dict[int, CallStep] = {}
        for number, step in enumerate(steps):
            if isinstance(step, CallStep):
                self._calls[step.write] = step
                self.writer[step.write] = number
            else:
                self.writer |= dict.fromkeys(ends(step)[1], number)

    def root(self, cell: int) -> int:
        """Return the cell whose memory a cell may share."""
        return self.roots.get(cell, cell)

    def reads(self, step: Step, array: int) -> bool:
        """Whether a step reads the memory of an array."""
        cells = list(step.reads)
        if isinstance(step, RegionStep):
            cells += [update.reads[0] for update in step.stores.values()]
        return any(self.root(cell) == self.root(array) for cell in cells)

    def is_part(self, cell: int, update: CallStep) -> bool:
        """Whether a cell is the very slice that an update writes."""
        view = self._calls.get(cell)
        if view is None or view.symbol.op is not ops.slice:
            return False
        source = self._calls.get(view.reads[0])
        is_view = source is not None and source.symbol.op in VIEWS
        return not is_view and all(
            view.settings[name] == update.settings[name] for name in ("start", "stop", "step")
        )


def _is_storable(region: RegionStep, update: CallStep, places: _Places) -> bool:
    """Whether a region may write a result into the slice that an update writes."""
    index = [cell for cell, _ in region.writes].index(update.reads[1])
    if region.rows or region.shape != update.part_shape:
        return False
    slots = region.body.slots
    own = {k for k, slot in enumerate(slots) if (slot.kind, slot.number) == ("out", index)}
    last = max([n for n, (_, args, _) in enumerate(region.body.calls) if args[-1] in own])
    function, args, _ = region.body.calls[last]
    after = region.body.calls[last + 1 :]
    readers = [function, *[call for call, operands, _ in after if own.intersection(operands)]]
    is_complex = any(slots[k].dtype.kind == "c" for k in own)
    if not update.is_contiguous and (is_complex or not CHEAP.issuperset(readers)):
        return False
    if not update.in_place:
        return update.reads[0] not in [other.write for other in region.stores.values()]
    if is_complex and region.size == 1:
        return False
    root = places.root(update.reads[0])
    for other in region.stores.values():
        if places.root(other.write) == root and not _is_disjoint(update, other):
            return False
    shared = {k: cell for k, cell, _ in region.ins if places.root(cell) == root}
    if any(shared.keys() & operands for _, operands, _ in after):
        return False
    if function is select and shared.keys() & args:
        return False
    return region.blocks == 1 or all(places.is_part(cell, update) for cell in shared.values())


def _is_disjoint(update: CallStep, other: CallStep) -> bool:
    """Whether the slices of two updates of one array have no common element."""
    bounds = [
        zip(*[each.settings[name] for name in ("start", "stop", "step")], strict=True)
        for each in (update, other)
    ]
    return any(
        a >= d or c >= b or (step == by and (a - c) % step != 0)
        for (a, b, step), (c, d, by) in zip(*bounds, strict=True)
    )
