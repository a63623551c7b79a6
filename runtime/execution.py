"""Running a graph: its program, made once, is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from graphir import Graph
from runtime.program import Program
from runtime.results import require_outputs


def execute(
    graph: Graph,
    /,
    *inputs: Any,
    out: Any = None,
    progress: bool | Callable[[int, int], None] = False,
    **named: Any,
) -> Any:
    """The outputs of a graph for these inputs; it is lowered first if it is not.

    Inputs are given by position or name, and must match their declared dtype (float32 for
    tensor_float32, uint64 for index and address; a Python number serves a 0-d input that it
    fits). One output is an array, several are a tuple; none shares memory with an input or another.
    `out` is where results are written, an array or a tuple of them. `progress` is called with the
    blocks that are done and those there are; True shows them on stderr. Inputs named `out` or
    `progress` are given by position. Raises ExecutionError that
    says which input is wrong, and how.
    """
    require_outputs(graph)
    program = graph.memo("program")
    if program is None:
        program = Program(graph)
        graph.memo("program", program)
    if progress is False:
        return program(*inputs, out=out, **named)
    return program.watched(_shown if progress is True else progress, *inputs, out=out, **named)


def _shown(done: int, total: int) -> None:
    """A line on stderr that is written over."""
    end = "\n" if done >= total else ""
    print(f"\r{done} of {total} blocks, {100 * done // total} %", end=end, file=sys.stderr)
