"""What commands that run something are given: by --input, in order or by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphir import ExecutionError, Graph
from runtime.binding import matched
from runtime.value_files import read_input


def add_inputs(command: Any) -> None:
    """Let a command take inputs."""
    command.add_argument(
        "--input",
        action="append",
        default=[],
        dest="inputs",
        metavar="[NAME=]VALUE",
        help="an input: x.npy, file.npz, file.npz:key or a Python number; named, or in order",
    )


def of_graph(graph: Graph, given: Sequence[str]) -> list[Any]:
    """The values of a graph's inputs, in its order; ExecutionError says which is missing or bad."""
    texts = matched(graph, *_parted(given))
    dtypes = [graph.concrete_dtype(symbol.dtype) for symbol in graph.inputs]
    return [read_input(text, dtype) for text, dtype in zip(texts, dtypes, strict=True)]


def of_function(given: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """The values of a function's arguments, by position and by name."""
    positional, named = _parted(given)
    return list(map(read_input, positional)), {name: read_input(x) for name, x in named.items()}


def _parted(given: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    positional: list[str] = []
    named: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name.isidentifier()):
            positional.append(text)
        elif name in named:
            raise ExecutionError(f"--input {name}=... is given twice")
        else:
            named[name] = value
    return positional, named
