"""Operands of products of integers: a product reads what a cast reads, and converts it by itself.

Kernels of products bring their operands into a layout of their own anyway, where an element of one
byte takes less time than the four or eight bytes that it is cast to.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from graphir import ops
from graphir.runtime.program.steps import CallStep, RegionStep, Step


def read_narrow(steps: Sequence[Step], outputs: Container[int]) -> Sequence[Step]:
    """Return the steps without the regions of casts that large products of integers alone read.

    The products read the operands of these casts. `outputs` are the cells of the plan's outputs.
    """
    if not any(isinstance(step, CallStep) and step.is_large_product for step in steps):
        return steps
    readers: dict[int, list[Step]] = {}
    for step in steps:
        for cell in step.reads:
            readers.setdefault(cell, []).append(step)
    others: list[Step] = []
    for step in steps:
        sources = _widening_casts(step)
        products = [reader for cell in sources for reader in readers.get(cell, ())]
        if (
            sources
            and not any(cell in outputs for cell in sources)
            and all(isinstance(reader, CallStep) and reader.is_large_product for reader in products)
        ):
            for product in products:
                product.reads[:] = [sources.get(cell, cell) for cell in product.reads]
        else:
            others.append(step)
    return others


def _widening_casts(step: Step) -> dict[int, int]:
    """Return the cells of a region's results and of their operands, if all are widening casts."""
    if not isinstance(step, RegionStep) or step.rows:
        return {}
    sources: dict[int, int] = {}
    for result in step.body.outs:
        source = result.args[0] if result.op is ops.cast else result
        is_widened = source.dtype.storage.kind in "biu" and result.dtype.storage.kind in "iu"
        is_widened &= source is not result and source.dtype.exact_in(result.dtype)
        if not is_widened or source.index not in step.cells:
            return {}
        sources[step.cells[result.index]] = step.cells[source.index]
    return sources
