"""The large arrays that a plan passes from step to step through memory, each with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from graphir import TensorType
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep, is_view


def unfused_steps(steps: Sequence[Any], fused: Sequence[Any]) -> Iterator[str]:
    """Yield a line for each array beyond the cache that one step writes and another one reads.

    `fused` are the steps that run, some of which have several of the `steps` as members.
    """
    groups = {
        id(member): number
        for number, step in enumerate(fused)
        for member in getattr(step, "members", [step])
    }
    writers, sources = dict[int, int](), dict[int, int]()  # a view has the source of its operand
    for number, step in enumerate(steps):
        reads: list[int] = [] if is_view(step) else step.reads
        for cell in reads:
            writer = writers.get(cell)
            if writer is None:
                continue
            before, size = steps[writer], _size(steps[writer], sources.get(cell, cell))
            both = groups.get(id(before)), groups.get(id(step))
            if size > COST.CACHE and None not in both and both[0] != both[1]:
                yield f"step {number} reads {size:,} B of step {writer} from memory: " + _reason(
                    before, step
                )
        if not is_view(step):
            writers |= dict.fromkeys(step.results, number)
        elif (source := writers.get(step.reads[0])) is not None:
            writers[step.write] = source
            sources[step.write] = sources.get(step.reads[0], step.reads[0])


def _size(step: Any, cell: int) -> int:
    """Return the bytes of an array that a step writes; 0 for statistics of its rows."""
    if isinstance(step, RegionStep):
        shape, dtype = step.results[cell]
        return math.prod(shape) * dtype.itemsize if shape == step.shape else 0
    if isinstance(step, CallStep) and type(step.symbol.type) is TensorType:
        return math.prod(step.shape) * step.symbol.dtype.storage.itemsize
    return 0


def _reason(before: Any, after: Any) -> str:
    """Return why two steps do not run together on parts of an array."""
    calls = [step.symbol.op.name for step in (before, after) if isinstance(step, CallStep)]
    if calls:
        return f"{calls[0]} computes whole arrays"
    if before.stores or after.stores:
        return "a region writes into an array that it updates"
    if before.trees or after.trees:
        return "a row is longer than a block"
    if before.shape != after.shape:
        return f"the rows of {list(before.shape)} are not those of {list(after.shape)}"
    return "no order of the steps lets them share their rows"
