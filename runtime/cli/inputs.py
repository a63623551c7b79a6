"""The option --input of commands that run a program: inputs in order or by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphir import ExecutionError, Graph
from runtime.binding import match_inputs
from runtime.value_files import read_input


def add_inputs(command: Any) -> None:
    """Add the option --input to a command."""
    command.add_argument(
        "--input",
        action="append",
        default=[],
        dest="inputs",
        metavar="[NAME=]VALUE",
        help="an input: x.npy, file.npz, file.npz:key or a Python number; named, or in order",
    )


def of_graph(graph: Graph, inputs: Sequence[str]) -> list[Any]:
    """Return the values of a graph's inputs, in its order.

    Raises ExecutionError that names the missing or invalid input.
    """
    texts = match_inputs(graph, *_split_by_name(inputs))
    dtypes = [graph.concrete_dtype(symbol.dtype) for symbol in graph.inputs]
    return [read_input(text, dtype) for text, dtype in zip(texts, dtypes, strict=True)]


def of_function(inputs: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of a function's arguments, by position and by name."""
    positional, keywords = _split_by_name(inputs)
    return list(map(read_input, positional)), {name: read_input(x) for name, x in keywords.items()}


def _split_by_name(inputs: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    positional: list[str] = []
    keywords: dict[str, str] = {}
    for text in inputs:
        name, equals, value = text.partition("=")
        if not (equals and name.isidentifier()):
            positional.append(text)
        elif name in keywords:
            raise ExecutionError(f"--input {name}=... is given twice")
        else:
            keywords[name] = value
    return positional, keywords
