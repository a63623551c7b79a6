"""Regions of elementwise steps, whose sweep needs no value of the region in memory at once.

The steps of a region have results of one shape. So a block of their results depends on the same
block of the operands from outside: the sweep computes all values of the region again, block by
block in a core's cache, and visits the steps of a block from the last to the first. Of the run, the
values at the borders of regions are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from graphir import Symbol, ops
from runtime.audit.adjoints import Array
from runtime.audit.subject import Subject
from runtime.audit.sweep import Sweep, View, views
from runtime.audit.tape import values_backwards
from runtime.audit.wide import WideRun

LEAST = 1 << 16
"""The elements of a step from which a region is worth its blocks."""


class SweepRegion(NamedTuple):
    """Elementwise steps of one shape in the order of the graph, and their operands from outside."""

    steps: tuple[Symbol, ...]
    operands: tuple[Symbol, ...]


class Regions:
    """The live symbols of a subject in order, those of regions together.

    `inner` has the indices of the symbols whose values are used inside of their region alone. A run
    keeps all other values, if these fit in `memory` bytes. Else there are no regions, and the run
    keeps the values that are used from the symbol of index `kept_from` on.
    """

    def __init__(self, subject: Subject, memory: int) -> None:
        self.memory = memory
        self.items: list[SweepRegion | Symbol] = []
        self.inner: set[int] = set()
        self._subject = subject
        special = {pin.index for pin in subject.beyond.pins.values()}
        special |= set(subject.beyond.pins) | {x.index for x in subject.beyond.observed}
        self._special = special | set(subject.beyond.watched) | set(subject.literals)
        steps: list[Symbol] = []
        scalars: list[Symbol] = []
        for symbol in subject.live:
            if self._is_step(symbol) and (not steps or symbol.shape == steps[0].shape):
                steps.append(symbol)
            elif not symbol.args or self._is_scalar(symbol):
                scalars.append(symbol)  # none of its operands is a step of the region
            else:
                self._close(scalars, steps)
                scalars, steps = [], [symbol] if self._is_step(symbol) else []
                self.items += [] if steps else [symbol]
        self._close(scalars, steps)
        ends = {x.index for x in subject.live if not x.args}  # as outputs are, by every run
        ends.update(x.index for x in subject.graph.outputs)
        self.kept_from = subject.kept_from(memory, self.inner | ends)
        if self.kept_from:
            self.inner.clear()
            self.kept_from = subject.kept_from(memory)

    @property
    def complete_from(self) -> int:
        """The index of the symbol from which on a run keeps every value that is used."""
        return len(self._subject.graph.symbols) if self.inner else self.kept_from

    def _is_step(self, symbol: Symbol) -> bool:
        is_elementwise = symbol.op is ops.cast or symbol.op.kind == "elementwise"
        if not is_elementwise or symbol.index in self._special:
            return False
        size = self._subject.size_of(symbol)
        return size >= LEAST and all(self._subject.size_of(x) in (1, size) for x in symbol.args)

    def _is_scalar(self, symbol: Symbol) -> bool:
        operands = (symbol, *symbol.args)
        return symbol.op.computes and all(self._subject.size_of(x) <= 1 for x in operands)

    def _close(self, scalars: Sequence[Symbol], steps: Sequence[Symbol]) -> None:
        self.items += scalars
        if len(steps) < 2:
            self.items += steps
        else:
            places = {x.index for x in steps}
            outside = {x.index: x for step in steps for x in step.args if x.index not in places}
            self.items.append(SweepRegion(tuple(steps), tuple(outside.values())))
            last = self._subject.last
            self.inner.update(x.index for x in steps if last[x.index] in places)

    def backwards(self, sweep: Sweep) -> None:
        """Visit all symbols from the last to the first; the sweep's run has the values it kept."""
        if not self.inner:
            for run, symbol in values_backwards(
                self._subject, sweep.run, self.kept_from, self.memory
            ):
                sweep.run = run
                sweep.visit(symbol)
            return
        for item in reversed(self.items):
            if isinstance(item, SweepRegion):
                _visit(item, sweep)
            else:
                sweep.visit(item)


def _visit(region: SweepRegion, sweep: Sweep) -> None:
    """Visit the steps of a region, block by block."""
    whole = sweep.run
    adjoints = {x.index: parts for x in region.steps if (parts := sweep.take(x))}
    erring = [x for x in region.operands if x.index in sweep.erring]
    size = max(whole.cached_value(x).size for x in region.operands)
    totals: dict[tuple[int, int], Array] = {}
    for view in views((size,), [(size,), ()]) if adjoints else ():
        sweep.run = _block_run(whole, region, view)
        for place, parts in adjoints.items():
            sweep.give(place, {number: view(part) for number, part in parts.items()})
        for step in reversed(region.steps):
            sweep.visit(step)
        for x in erring:
            for number, part in sweep.take(x).items():
                if (x.index, number) not in totals:
                    totals[x.index, number] = np.zeros(whole.cached_value(x).shape, part.dtype)
                target = view(totals[x.index, number])
                target += part
    sweep.run = whole
    for (place, number), total in totals.items():
        sweep.add(whole.graph.symbols[place], number, total)


def _block_run(whole: WideRun, region: SweepRegion, view: View) -> WideRun:
    """Return a run with the values of a region's block; `whole` has those of its operands."""
    run, run_beside = copy.copy(whole), copy.copy(whole.beside)
    run.beside = run_beside
    for each in (run, run_beside):
        each.values = list[Array | None]([None]) * len(whole.values)
    for x in region.operands:
        wide, beside = whole.cached_value(x), whole.beside.cached_value(x)
        run.values[x.index] = block = view(wide)
        run_beside.values[x.index] = block if wide is beside else view(beside)
    for step in region.steps:
        run_beside.values[step.index] = run_beside.value(step)
        run.values[step.index] = run.value(step)
    return run
