"""Steps small enough to run at once, written as one Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphir.evaluation import contiguous
from runtime.program.assembly import WRITTEN, Writer
from runtime.program.memory import Need, View
from runtime.program.rows import called
from runtime.program.steps import CHEAP, CallStep, RegionStep, Run, ScalarStep

Step = ScalarStep | CallStep | RegionStep


class Straight:
    """The function `function(scratch, *values)` that runs some steps.

    `reads` are the cells whose values it is given, `writes` those whose it returns; `views` is the
    scratch memory that it needs.
    """

    blocks = 1

    def __init__(
        self,
        steps: Sequence[Step],
        reads: Sequence[int],
        writes: Sequence[int],
        constants: Mapping[int, Any],
    ) -> None:
        self.reads, self.writes = reads, writes
        self.fits: Callable[[Sequence[Any]], bool] = bool
        self._views: list[View] = []
        writer = Writer()
        for cell, array in constants.items():
            writer.lines.append(f"{_cell(cell)} = {writer.name(array)}")
        for step in steps:
            if isinstance(step, RegionStep):
                self._region(step, writer)
            elif isinstance(step, ScalarStep):
                results = ", ".join(map(_cell, step.writes))
                read = ", ".join(map(_cell, step.reads))
                writer.lines.append(f"{results}, = {writer.name(step.function)}({read})")
            else:
                read = ", ".join(map(_cell, step.reads))
                writer.lines.append(f"{_cell(step.write)} = {writer.name(step.call)}({read})")
        self.need = Need(self._views)
        if self._views:
            names = ", ".join([f"s{k}" for k in range(len(self._views))])
            writer.lines.insert(0, f"{names}, = scratch")
        writer.lines.append(f"return {', '.join(map(_cell, writes))},")
        self.function: Callable[..., tuple[Any, ...]] = writer.function(
            ["scratch", *map(_cell, reads)]
        )

    def guard(self, inputs: Sequence[Any]) -> None:
        """Make `fits` say whether other inputs are plain arrays of the same dtypes and shapes."""
        writer, names = Writer(), [f"i{k}" for k in range(len(inputs))]
        plain = writer.name(np.ndarray)
        tests = [
            f"{name}.__class__ is {plain} and {name}.dtype is {writer.name(one.dtype)} "
            f"and {name}.shape == {writer.name(one.shape)}"
            for name, one in zip(names, inputs, strict=True)
        ]
        writer.lines.append(f"if len(inputs) != {len(inputs)}: return False")
        if names:
            writer.lines.append(f"{', '.join(names)}, = inputs")
        writer.lines.append(f"return {' and '.join(tests) or True}")
        self.fits = writer.function(["inputs"])

    def run(self, run: Run) -> None:
        """Run as a step."""
        values = [run.values[cell] for cell in self.reads]
        found = self.function(run.lane.views(self.need), *values)
        for cell, value in zip(self.writes, found, strict=True):
            run.values[cell] = value

    def _region(self, step: RegionStep, writer: Writer) -> None:
        body = step.body
        names = [""] * len(body.slots)
        for at, (k, _, _) in enumerate(step.scratch):
            names[k] = f"s{len(self._views) + at}"
        self._views += step.views(step.shape)
        for k, cell, dtype in step.ins:
            names[k] = _cell(cell)
            if _is_strict(step, k):
                array = writer.name(np.ascontiguousarray if step.shape else np.asarray)
                writer.lines.append(f"if not {names[k]}.flags.c_contiguous:")
                writer.lines.append(f"    {names[k]} = {array}({names[k]})")
            if dtype != body.inputs[body.slots[k].number].dtype.storage:
                writer.lines.append(f"i{k} = {names[k]}.view({writer.name(dtype)})")
                names[k] = f"i{k}"
        for cell, dtype in step.writes:
            empty, shape = writer.name(np.empty), writer.name(step.shape)
            writer.lines.append(f"{_cell(cell)} = {empty}({shape}, {writer.name(dtype)})")
        for k, index, dtype in step.outs:
            cell, stored = step.writes[index]
            names[k] = _cell(cell)
            if dtype != stored:
                writer.lines.append(f"o{k} = {names[k]}.view({writer.name(dtype)})")
                names[k] = f"o{k}"
        if len(body.calls) <= WRITTEN:
            writer.call(body.calls, [*names, *map(writer.name, body.constants)])
        else:
            writer.lines.append(f"{writer.name(body.function)}({', '.join(names)})")
        for rows in step.rows:
            read = ", ".join([names[rows.place], *map(_cell, rows.others)])
            made = writer.name(partial(_rows, rows.symbol, rows.settings))
            writer.lines.append(f"{_cell(rows.cell)} = {made}({read})")


def alone(step: RegionStep) -> Straight:
    """A region as a step of its own."""
    reads = dict.fromkeys([cell for _, cell, _ in step.ins])
    reads.update(dict.fromkeys([cell for rows in step.rows for cell in rows.others]))
    writes = [cell for cell, _ in step.writes] + [rows.cell for rows in step.rows]
    return Straight([step], list(reads), writes, {})


def _rows(symbol: Any, settings: Any, *operands: Any) -> Any:
    return called(symbol, [*map(contiguous, operands)], settings)


def _cell(cell: int) -> str:
    return f"v{cell}"


def _is_strict(step: RegionStep, place: int) -> bool:
    """Whether what reads an input needs it contiguous: so do complex products."""
    return any(
        place in args and (one.function not in CHEAP or one.out.dtype.kind == "c")
        for one, args in step.body.calls
    )
