"""Updates in place: which update ops may write into their operand instead of a copy of it.

Each cell has a root: the cell whose memory its value may share. A view has the root of its operand,
and so has the result of an update in place. An update may write into its operand if the plan owns
the memory of the root, and no later step and no output reads a cell of that root. Inputs, constants
and results of kernels that may return an operand are never owned. Memory serves values of its
storage dtype alone, which `Memory.storages` has and nothing else: steps read the bits of a cell in
other dtypes too.

The body of a loop may own its carries: the loop copies them once, and then each iteration takes
memory that only the iteration before has written. Such carries are donated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence

from graphir import ops
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cutting import UPDATES, VIEWS
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
        for cell in step.results:
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
