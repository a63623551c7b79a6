"""Plans: the steps of a program for inputs of certain shapes, and how they run at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from graphir.lazy import lazy
from runtime.program.codegen.straight import Straight, alone, ends, fits
from runtime.program.cost_model import (
    LOOK_CALLS,
    LOOK_TIME,
    RECYCLED,
    STEPWISE,
)
from runtime.program.steps import CallStep, RegionStep, ScalarStep, shape_of

if TYPE_CHECKING:
    from runtime.program.program import Program

Step: TypeAlias = "ScalarStep | CallStep | RegionStep"


class Plan:
    """The steps for inputs of certain shapes, with all sizes known.

    `straight` is all of them in one, where they are few and small; `native` is that without Python.
    `left` are the calls before the next look for machine code, `price` is what one takes that is
    `straight`, in nanoseconds. Results that are large are best made by steps, in old memory.
    """

    def __init__(self, steps: Sequence[Step], sizes: Mapping[str, int], program: Program) -> None:
        self.bound, self.exit = steps, frozenset(program.exit)
        self._entries: dict[Step, Callable[..., Any]] = {}
        self.native: Callable[..., Any] | None = None
        self.left = self._counted = 0
        self.price = 0.0
        self._apart = False
        self.shapes = [shape_of(symbol, sizes) for symbol in program.lowered.outputs]
        self.inputs = [shape_of(symbol, sizes) for symbol in program.lowered.inputs]
        self.straight = self._written(program) if fits(steps) else None
        self.blocks = sum(step.blocks for step in steps)
        sizes_of = zip(self.shapes, program.lowered.outputs, strict=True)
        self._large = any(
            math.prod(n) * one.dtype.storage.itemsize >= RECYCLED for n, one in sizes_of
        )

    def look(self, program: Program) -> None:
        """Count the calls since the last time, and take what machine code there is by now.

        A plan of one step becomes a call without Python; of several, steps become such calls.
        """
        if not self.straight and (self._large or len(self.bound) > 1):
            self.left = LOOK_CALLS
            return
        regions = [step for step in self.bound if not isinstance(step, CallStep) and step.native]
        spent, prices = self._counted * self.price, sum(step.price for step in regions) or 1
        for step in regions:
            step.native.spent += spent * step.price / prices
        calls = int(LOOK_TIME / (self.price or LOOK_TIME))
        self.left = self._counted = max(1, min(LOOK_CALLS, calls))
        symbols = {cell: program.lowered.symbols[index] for index, cell in program.cells.items()}
        known = program.values([None] * len(program.entry))
        found: dict[Step, Callable[..., Any]] = {}
        for step in regions:
            reads, writes = ends(step) if len(self.bound) > 1 else (program.entry, program.exit)
            both = [symbols[cell] for cell in reads], [symbols[cell] for cell in writes]
            if step not in self._entries and not self._large:
                made = step.native.entry(step, *both, known)
                found |= {step: made} if made else {}
        self._entries |= found
        if found and len(self.bound) > 1:
            self.straight = self._written(program)
        elif found:
            self.native = found[self.bound[0]]
        if self.price > STEPWISE and spent > LOOK_TIME / 2 and not self._apart:
            others = [step for step in regions if step.shape and step not in self._entries]
            self._apart = any(step.native.task(step, known) for step in others)

    @property
    def stepwise(self) -> bool:
        """Whether machine code that only steps call is worth them."""
        return self.price > STEPWISE and (self.native is not None or self._apart)

    def _written(self, program: Program) -> Straight:
        types = [
            (program.lowered.concrete_dtype(one.dtype).storage, shape)
            for one, shape in zip(program.lowered.inputs, self.inputs, strict=True)
        ]
        both = program.entry, program.exit
        return Straight(self.bound, *both, program.constants, types, self._entries)

    @lazy
    def dead(self) -> list[list[int]]:
        """For each step the cells that nothing reads after it."""
        last = {cell: number for number, step in enumerate(self.bound) for cell in step.reads}
        found: list[list[int]] = [[] for _ in self.bound]
        for cell, number in last.items():
            if cell not in self.exit:
                found[number].append(cell)
        return found

    @lazy
    def steps(self) -> list[Straight | CallStep | RegionStep]:
        """The steps as they run one by one."""
        for step in self.bound:
            if isinstance(step, RegionStep) and step.blocks == 1:
                step.small = alone(step)
        return [step if isinstance(step, RegionStep) else alone(step) for step in self.bound]
