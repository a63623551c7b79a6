"""Regions of elementwise steps, whose values need not be in memory at once.

The steps of a region have results of one shape, to which their operands broadcast. So a block of
their results depends on a block of the operands from outside. Each pass over a region, forwards or
backwards, runs it block by block in a core's cache. Of the run, the values at the borders of
regions are kept.

A backward pass over values that do not fit in memory computes them part by part. A range of symbols
whose values fit in memory is computed and kept. A longer range is halved: the first half runs to
the middle, where the live values are the checkpoint from which the second half starts (A. Griewank,
Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation, 1992). So the memory is that of the range that fits, and of one set of live values
for each halving.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from graphir.passes.rewriter import is_conversion
from graphir.public import Symbol
from graphir.runtime.audit.blocked_run import Array, View, keep_freed_memory
from graphir.runtime.audit.exact_arrays import join
from graphir.runtime.audit.subject import Subject
from graphir.runtime.audit.sweep import Sweep, views
from graphir.runtime.audit.wide_run import WideRun

LEAST = 1 << 16
"""The elements of a step from which a region is worth its blocks."""

SMALL = 1 << 26
"""The bytes of values that a run keeps in any case."""

Visit: TypeAlias = Callable[[WideRun, Symbol], None]
Compute: TypeAlias = Callable[[WideRun, Symbol, dict[int, Array]], None]
_Values: TypeAlias = dict[int, tuple[Array | None, Array | None]]


class SingleStep(NamedTuple):
    """A step outside of regions, whose values a run has as a whole."""

    symbol: Symbol

    @property
    def steps(self) -> tuple[Symbol, ...]:
        """The step alone."""
        return (self.symbol,)

    @property
    def inner(self) -> Iterable[Symbol]:
        """No steps."""
        return ()

    def block_runs(self, run: WideRun) -> Iterable[WideRun]:
        """Return the run itself, as the one block."""
        return (run,)

    def walk(self, run: WideRun, visit: Visit) -> None:
        """Compute the values of the step in both runs, and visit it."""
        for either in (run.actual_run, run):
            if either.values[self.symbol.index] is None:
                either.values[self.symbol.index] = either.value(self.symbol)
        visit(run, self.symbol)

    def overlay(
        self, run: WideRun, places: Container[int], values: dict[int, Array], compute: Compute
    ) -> None:
        """Compute another value of the step into `values`, if it is at one of `places`."""
        if self.symbol.index in places:
            compute(run, self.symbol, values)

    def visit_backwards(self, sweep: Sweep) -> None:
        """Visit the step."""
        sweep.visit(self.symbol)


class SweepRegion(NamedTuple):
    """Elementwise steps of one shape in the order of the graph, and their operands from outside.

    `border` are the steps whose values are used outside of the region.
    """

    shape: tuple[int, ...]
    steps: tuple[Symbol, ...]
    operands: tuple[Symbol, ...]
    border: tuple[Symbol, ...]

    @property
    def inner(self) -> Iterable[Symbol]:
        """The steps whose values are used inside of the region alone."""
        border = {x.index for x in self.border}
        return (x for x in self.steps if x.index not in border)

    def blocks(self, run: WideRun) -> Iterator[tuple[WideRun, View]]:
        """Yield a run of each block, and its view; `run` has the values of the operands."""
        shapes = [run.actual_run.cached_value(x).shape for x in self.operands]
        for view in views(self.shape, shapes):
            yield run.block(self.operands, view), view

    def block_runs(self, run: WideRun) -> Iterable[WideRun]:
        """Yield a run of each block."""
        return (block for block, _ in self.blocks(run))

    def walk(self, run: WideRun, visit: Visit) -> None:
        """Compute the values of the border in both runs, and visit each step in each block."""
        equal_places = {x.index for x in self.steps}
        border, last_reads = {x.index for x in self.border}, self._last_reads()
        for block, view in self.blocks(run):
            for step, places in zip(self.steps, last_reads, strict=True):
                block.actual_run.cached_value(step)
                if not block.is_equal(step):
                    equal_places.discard(step.index)
                    block.cached_value(step)
                visit(block, step)
                if step.index in border:
                    self._store(run, step, block, view)
                block.free(places)
        run.equal_places |= equal_places

    def _last_reads(self) -> list[list[int]]:
        """Return for each step the indices of the symbols that no later step reads."""
        last = {x.index: i for i, step in enumerate(self.steps) for x in (step, *step.args)}
        reads: list[list[int]] = [[] for _ in self.steps]
        for place, i in last.items():
            reads[i].append(place)
        return reads

    def _store(self, run: WideRun, step: Symbol, block: WideRun, view: View) -> None:
        """Store a block of a border value; both runs share the array while their blocks do."""
        at, actual_run = step.index, run.actual_run
        actual, wide = block.actual_run.cached_value(step), block.cached_value(step)
        whole = actual_run.values[at] = store(actual_run.values[at], actual, self.shape, view)
        old = run.values[at]
        is_shared = wide is actual and (old is None or old is whole)
        if old is whole and not is_shared:
            old = whole.copy()
        run.values[at] = whole if is_shared else store(old, wide, self.shape, view)

    def overlay(
        self, run: WideRun, places: Container[int], values: dict[int, Array], compute: Compute
    ) -> None:
        """Compute other values of the steps at `places`; those of the border go into `values`."""
        steps = [x for x in self.steps if x.index in places]
        border = [x.index for x in self.border if x.index in places]
        for block, view in self.blocks(run) if steps else ():
            parts = {x.index: view(values[x.index]) for x in self.operands if x.index in values}
            for step in steps:
                compute(block, step, parts)
            for place in border:
                values[place] = store(values.get(place), parts[place], self.shape, view)

    def visit_backwards(self, sweep: Sweep) -> None:
        """Visit the steps from the last to the first, block by block."""
        whole = sweep.run
        adjoints = {x.index: parts for x in self.steps if (parts := sweep.take(x))}
        if not adjoints:
            return
        later = {x.index: sweep.take(x) for x in self.operands}
        erring = [x for x in self.operands if x.index in sweep.erring]
        totals: dict[tuple[int, int], Array] = {}
        for block, view in self.blocks(whole):
            sweep.run = block
            for place, parts in adjoints.items():
                sweep.give(place, {number: view(part) for number, part in parts.items()})
            for step in reversed(self.steps):
                sweep.visit(step)
                block.free((step.index,))
            for x in erring:
                for number, part in sweep.take(x).items():
                    if (x.index, number) not in totals:
                        shape = whole.actual_run.cached_value(x).shape
                        totals[x.index, number] = np.zeros(shape, part.dtype)
                    target = view(totals[x.index, number])
                    target += part
        sweep.run = whole
        for place, parts in later.items():
            sweep.give(place, parts)
        for (place, number), total in totals.items():
            sweep.add(whole.graph.symbols[place], number, total, owned=True)


def store(whole: Array | None, part: Array, shape: tuple[int, ...], view: View) -> Array:
    """Store a block in an array of a shape, made for the first block, and return the array.

    Blocks of several dtypes make an array of one that has all elements.
    """
    whole, part = (np.zeros(shape, part.dtype), part) if whole is None else join(whole, part)
    view(whole)[...] = part
    return whole


class Regions:
    """The live symbols of a subject in order, those of regions together.

    A run keeps the values that are used outside of regions if these fit in `memory` bytes and the
    audit is likely to read them again, to sweep or to measure. Else the run frees each value after
    its last use, and `complete` computes the values again if the audit does read them. If they do
    not fit, a sweep computes them part by part (see `values_backwards`).
    """

    def __init__(self, subject: Subject, memory: int, blame: bool) -> None:
        self.memory = memory
        self.items: list[SweepRegion | SingleStep] = []
        self.subject = subject
        facts = subject.facts
        special = {x.index for x in (*facts.pins.values(), *facts.observed)}
        special |= {x.index for pair in facts.masks.items() for x in pair}
        self._special = special | set(facts.pins) | set(facts.watched) | set(subject.literals)
        steps: dict[int, Symbol] = {}
        others: list[Symbol] = []
        for symbol in subject.live:
            is_step = self._is_step(symbol)
            shape = next((x.shape for x in steps.values()), symbol.shape)
            if is_step and symbol.shape == shape:
                steps[symbol.index] = symbol
            elif not is_step and steps.keys().isdisjoint(x.index for x in symbol.args):
                others.append(symbol)
            else:
                self._close(others, list(steps.values()))
                others, steps = ([], {symbol.index: symbol}) if is_step else ([symbol], {})
        self._close(others, list(steps.values()))
        inner = {x.index for item in self.items for x in item.inner}
        self.has_blocks = bool(inner)
        if self.has_blocks:
            keep_freed_memory()
        ends = {x.index for x in subject.live if not x.args}  # as outputs are, by every run
        ends |= facts.watched | {x.index for x in subject.graph.outputs}
        free_places = inner | ends
        size = sum(subject.bytes_of(x) for x in subject.live if x.index not in free_places)
        self.fits, is_small = size <= memory, size <= SMALL
        may_lose = any(map(subject.may_lose, subject.sites))
        self.is_kept = blame and self.fits and (is_small or may_lose)
        self._last_reads = self._reads(ends)

    def _reads(self, ends: set[int]) -> list[list[int]]:
        """Return for each item the indices of the symbols that no later item reads."""
        reads: list[list[int]] = []
        later = set(ends)
        for item in reversed(self.items):
            places = {x.index for step in item.steps for x in (step, *step.args)} - later
            reads.append(list(places))
            later |= places
        return reads[::-1]

    def _is_step(self, symbol: Symbol) -> bool:
        is_elementwise = is_conversion(symbol) or symbol.op.kind == "elementwise"
        if not is_elementwise or symbol.index in self._special:
            return False
        return self.subject.size_of(symbol) >= LEAST

    def _close(self, others: Sequence[Symbol], steps: Sequence[Symbol]) -> None:
        singles = others if len(steps) > 1 else [*others, *steps]
        self.items += map(SingleStep, singles)
        if len(steps) < 2:
            return
        places = {x.index for x in steps}
        outside = {x.index: x for step in steps for x in step.args if x.index not in places}
        last = self.subject.last
        inner = {x.index for x in steps if last[x.index] in places}
        border = tuple(x for x in steps if x.index not in inner)
        shape = self.subject.shape_of(steps[0])
        self.items.append(SweepRegion(shape, tuple(steps), tuple(outside.values()), border))

    def walk(self, run: WideRun, visit: Visit) -> Iterator[SweepRegion | SingleStep]:
        """Compute both runs, visit each step, in a region each of its blocks; yield the items.

        At each yield, the values of the item's border and of its operands exist.
        """
        for item, last_reads in zip(self.items, self._last_reads, strict=True):
            item.walk(run, visit)
            yield item
            for place in () if self.is_kept else last_reads:
                run.values[place] = run.actual_run.values[place] = None

    def complete(self, run: WideRun) -> None:
        """Compute the values that are used outside of regions, if the run did not keep them."""
        if not self.is_kept:
            self.is_kept = True
            for _ in self.walk(run, lambda _, __: None):
                pass

    def passes(self, run: WideRun, symbols: Sequence[Symbol]) -> Iterator[tuple[WideRun, Symbol]]:
        """Run steps again: yield each block of each, with a run that has the values of operands."""
        places = {x.index for x in symbols}
        if not self.fits:
            run = self.subject.run()
            yield from ((run, symbol) for symbol in run.walk() if symbol.index in places)
            return
        self.complete(run)
        for item in self.items:
            if steps := [x for x in item.steps if x.index in places]:
                yield from ((block, x) for block in item.block_runs(run) for x in steps)

    def overlay(
        self, run: WideRun, places: Container[int], values: dict[int, Array], compute: Compute
    ) -> None:
        """Compute other values of the symbols at `places`; those of the outputs go into `values`.

        `compute` sets the value of a symbol in a run, from the operands that differ from the run's.
        """
        self.complete(run)
        for item, last_reads in zip(self.items, self._last_reads, strict=True):
            item.overlay(run, places, values, compute)
            for place in last_reads:
                values.pop(place, None)

    def backwards(self, sweep: Sweep) -> None:
        """Visit all symbols from the last to the first."""
        if not self.fits:
            for sweep.run, symbol in values_backwards(self.subject, self.memory):
                sweep.visit(symbol)
            return
        self.complete(sweep.run)
        for item in reversed(self.items):
            item.visit_backwards(sweep)


def values_backwards(subject: Subject, memory: int) -> Iterator[tuple[WideRun, Symbol]]:
    """Yield each live symbol from the last to the first, with a run that has its values.

    The run also has the values of the symbol's operands, and at most `memory` bytes of values at a
    time besides the checkpoints.
    """
    tape = _Tape(subject, memory)
    yield from tape.range(0, len(subject.live), tape.values(0))


class _Tape:
    def __init__(self, subject: Subject, memory: int) -> None:
        self.subject, self.memory, self.run = subject, memory, subject.run()
        self.live, self.last = subject.live, subject.last
        self.sizes = [subject.bytes_of(symbol) for symbol in self.live]

    def values(self, end: int) -> _Values:
        """Return the values that the run has of the first `end` live symbols, and of inputs."""
        places = {x.index for x in (*self.run.graph.inputs, *self.live[:end])}
        pairs = {i: (self.run.actual_run.values[i], self.run.values[i]) for i in places}
        return {i: pair for i, pair in pairs.items() if pair[0] is not None}

    def range(self, start: int, end: int, values: _Values) -> Iterator[tuple[WideRun, Symbol]]:
        """Yield the symbols of a range from the last to the first; the run has `values`."""
        symbols = self.live[start:end]
        if end - start <= 1 or sum(self.sizes[start:end]) <= self.memory:
            self._advance(symbols, keep=True)
            yield from ((self.run, symbol) for symbol in reversed(symbols))
            return
        middle = (start + end) // 2
        self._advance(self.live[start:middle], keep=False)
        yield from self.range(middle, end, self.values(middle))
        self._restore(values, end)
        yield from self.range(start, middle, values)

    def _advance(self, symbols: Sequence[Symbol], keep: bool) -> None:
        runs = self.run.actual_run, self.run
        for symbol in symbols:
            for run in runs:
                if run.values[symbol.index] is None:
                    run.values[symbol.index] = run.value(symbol)
            for x in () if keep else (symbol, *symbol.args):
                if self.last[x.index] == symbol.index:
                    for run in runs:
                        run.values[x.index] = None

    def _restore(self, values: _Values, end: int) -> None:
        for symbol in self.live[:end]:
            self.run.actual_run.values[symbol.index] = self.run.values[symbol.index] = None
        for i, (actual, wide) in values.items():
            self.run.actual_run.values[i], self.run.values[i] = actual, wide
