"""`execute`: compile a graph to a Program once, cache the Program on the graph, and call it."""

from __future__ import annotations

from typing import Any, overload

from graphir.hints import ArrayOrNumber
from graphir.public import Graph
from graphir.runtime.program import Program
from graphir.runtime.results import Out, require_outputs


@overload
def execute(
    graph: Graph,
    /,
    *inputs: ArrayOrNumber,
    out: Out,
    **keywords: ArrayOrNumber,
) -> Out: ...
@overload
def execute(
    graph: Graph,
    /,
    *inputs: ArrayOrNumber,
    out: None = None,
    **keywords: ArrayOrNumber,
) -> Any: ...
def execute(
    graph: Graph,
    /,
    *inputs: ArrayOrNumber,
    out: Any = None,
    **keywords: ArrayOrNumber,
) -> Any:
    """Run a graph on inputs and return its outputs; lowers the graph first if necessary.

    The inputs come by position or by name. Each must have its declared dtype (float32 for
    tensor_float32, uint64 for index and address); a Python number may stand for a 0-d input whose
    dtype can represent it. Returns an array for one output and a tuple for several. No output
    shares memory with an input or another output.

    `out` is an array, or a tuple of arrays, that receives the results. Pass an input
    named `out` by position. Raises ExecutionError that names the wrong input and the mismatch.
    """
    require_outputs(graph)
    program = graph.memo("program")
    if program is None:
        program = Program(graph)
        graph.memo("program", program)
    return program(*inputs, out=out, **keywords)
