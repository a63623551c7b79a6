"""Running a graph: lower it, then compute."""

from __future__ import annotations

from typing import Any

from graphir import Graph
from passes import lower
from runtime.interpreter import interpret
from runtime.results import require_outputs


def execute(graph: Graph, /, *inputs: Any, **named: Any) -> Any:
    """The outputs of a graph for these inputs; it is lowered first if it is not.

    Inputs are given by position or name, and must match their declared dtype (float32 for
    tensor_float32, uint64 for index and address; a Python number serves a 0-d input that it
    fits). One output is an array, several are a tuple; none shares memory with an input or another.
    Raises ExecutionError that says which input is wrong, and how.
    """
    require_outputs(graph)
    return interpret(lower(graph), *inputs, **named)
