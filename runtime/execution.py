"""Running a graph: its program, made once, is called."""

from __future__ import annotations

from typing import Any

from graphir import Graph
from runtime.program import Program
from runtime.progress import Watch, watcher
from runtime.results import require_outputs


def execute(
    graph: Graph,
    /,
    *inputs: Any,
    out: Any = None,
    progress: bool | Watch = False,
    **keywords: Any,
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
    watch = watcher(progress, "blocks")
    if watch is None:
        return program(*inputs, out=out, **keywords)
    return program.watched(watch, *inputs, out=out, **keywords)
