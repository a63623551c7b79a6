"""Chains of views: a slice and the reshapes that drop and insert axes of size 1 become one view.

`a[i]` and `a[:, j, None]` are recorded as a slice and its reshapes. Each view costs a replay as
much as arithmetic on a thousand elements, and NumPy's basic indexing does a whole chain at once.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from graphir import ops
from graphir.runtime.program.memory import Box
from graphir.runtime.program.steps import CallStep, LayoutStep, Step, is_view


def merge_views(steps: Sequence[Step], outputs: Container[int]) -> list[Step]:
    """Return the steps with one view of an array in place of each chain of views.

    `outputs` are the cells of the plan's outputs.
    """
    boxes: dict[int, tuple[int, Box]] = {}
    merged_steps: list[Step] = []
    for step in steps:
        if isinstance(step, CallStep) and step.symbol.op is ops.slice and step.fits:
            boxes[step.write] = step.reads[0], step.box
        elif isinstance(step, CallStep) and step.symbol.op is ops.reshape:
            source, box = boxes.get(step.reads[0], (-1, None))
            key = box and box.key_in(step.shape)
            if box and key:
                boxes[step.write] = source, box
                step = LayoutStep(source, step.write, step.shape, "{0}[{1}]", [key])
        merged_steps.append(step)
    return _live(merged_steps, outputs)


def _live(steps: Sequence[Step], outputs: Container[int]) -> list[Step]:
    """Return the steps without the views that nothing reads."""
    live: list[Step] = []
    reads: set[int] = set()
    for step in reversed(steps):
        if not is_view(step) or step.write in reads or step.write in outputs:
            reads.update(step.reads)
            live.append(step)
    return live[::-1]
