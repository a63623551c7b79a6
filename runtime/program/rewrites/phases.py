"""The fusion of regions over the same rows into one step: see runtime/program/phases.py."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np

from graphir.runtime.program.batches import BatchStep
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.phases import PhasesStep, Space, is_as
from graphir.runtime.program.steps import RegionStep, Step, is_view

AnyStep: TypeAlias = "Step | PhasesStep | BatchStep"


def fuse_phases(steps: Sequence[AnyStep], exit_cells: Collection[int]) -> list[AnyStep]:
    """Return the steps with regions over the same rows as one step, in an order that computes all.

    A plan with updates in place keeps its order, and so its steps. `exit_cells` are the cells of
    the outputs.
    """
    for number, step in enumerate(steps):
        if not isinstance(step, RegionStep) or not step.size or not step.rows:
            continue
        if step.trees or step.stores:
            continue
        if fusion := _Fusion(steps, number).fuse(exit_cells):
            return fusion
    return list(steps)


class _Fusion:
    """The regions that can run together with a region of rows, and the steps around them.

    `before` are the steps that depend on none of the members. `after` are the other steps; none of
    the members depends on them.
    """

    def __init__(self, steps: Sequence[AnyStep], seed: int) -> None:
        region = steps[seed]
        assert isinstance(region, RegionStep)
        self.space = Space(region.shape, region.axes)
        self.members, self._operands = [region], set(region.reads)
        self.before, self.after = [*steps[:seed]], list[AnyStep]()
        self._shapes = shapes_of(region)
        self._views: dict[int, tuple[int, AnyStep]] = {}
        late: set[int] = set()
        for step in steps[seed + 1 :]:
            if not late.isdisjoint(step.reads):
                late.update(step.results)
                self.after.append(step)
            elif isinstance(step, RegionStep) and self._takes(step):
                self.members.append(step)
                self._operands.update(step.reads)
                self._shapes |= shapes_of(step)
            elif self._shapes.keys().isdisjoint(step.reads):
                self.before.append(step)
            elif view := self._viewed(step):
                self._views[view[1]] = self._views.get(view[0], view)[0], step
                self._shapes[view[1]] = step.shape
            else:
                late.update(step.results)
                self.after.append(step)

    def _takes(self, step: RegionStep) -> bool:
        """Whether a region can be a phase: it has the rows, or one value for each row."""
        space, whole = self.space, step.shape == self.space.shape
        if step.stores or step.is_reshaped or step.trees:
            return False
        if step.axes not in (0, space.axes) if whole else step.rows or step.size != space.rows:
            return False
        if self._operands.isdisjoint(step.reads) and self._shapes.keys().isdisjoint(step.reads):
            return False
        if any(cell in self._shapes for rows in step.rows for cell in rows.others):
            return False
        return all(
            is_as(own, self._shapes[cell])
            and is_as(own, step.shape if math.prod(own) == step.size else space.row_shape)
            for symbol in step.body.inputs
            if (cell := step.cells[symbol.index]) in self._shapes
            and (own := step.operand_shape(symbol))
        )

    def _viewed(self, step: AnyStep) -> tuple[int, int] | None:
        """Return the cell that a view views, and its own; the view has one value for each row."""
        if not is_view(step):
            return None
        cell, count = step.reads[0], self.space.rows
        shape = self._shapes[cell]
        if math.prod(shape) != count or math.prod(step.shape) != count:
            return None
        rows = np.arange(count)
        in_order = np.array_equal(np.asarray(step.call(rows.reshape(shape))).reshape(-1), rows)
        return (cell, step.write) if in_order else None

    def fuse(self, exit_cells: Collection[int]) -> list[AnyStep] | None:
        """Return all steps, the members as one; None unless that saves passes over memory."""
        if sum(step.shape == self.space.shape for step in self.members) < 2:
            return None
        cells = {*exit_cells, *[cell for step in self.after for cell in step.reads]}
        views: list[AnyStep] = []
        for cell, (_, view) in reversed(self._views.items()):
            if cell in cells:
                views.insert(0, view)
                cells.update(view.reads)
        aliases = {cell: source for cell, (source, _) in self._views.items()}
        step = PhasesStep(self.members, self.space, aliases, cells)
        if step.bytes <= COST.CACHE or step.room == 0:
            return None
        before = fuse_phases(self.before, {*cells, *step.reads})
        return [*before, step, *views, *fuse_phases(self.after, exit_cells)]


def shapes_of(step: AnyStep) -> dict[int, tuple[int, ...]]:
    """Return the shapes of the results of a step, by cell."""
    if isinstance(step, RegionStep):
        return {cell: shape for cell, (shape, _) in step.results.items()}
    return dict.fromkeys(step.results, step.shape)
