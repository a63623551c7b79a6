"""What a run hands back: arrays of their own, one or a tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from graphir import ExecutionError, Graph


def results(values: Sequence[NDArray[Any]], inputs: Sequence[NDArray[Any]]) -> Any:
    """The outputs as callers may keep and change them: no input, no constant, not one another."""
    held = {id(_owner(array)) for array in inputs}
    owned: list[NDArray[Any]] = []
    for value in values:
        free = value.flags.writeable and id(_owner(value)) not in held
        owned.append(value if free else value.copy())
        held.add(id(_owner(owned[-1])))
    return owned[0] if len(owned) == 1 else tuple(owned)


def _owner(array: Any) -> Any:
    """What an array's memory belongs to, through any views."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def require_outputs(graph: Graph) -> None:
    """ExecutionError for what is no graph, or one without outputs."""
    if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExecutionError(f"a Graph is needed to run, not {graph!r}")
    if not graph.outputs:
        raise ExecutionError(
            f"graph {graph.name!r} has no outputs to compute; name them with g.output(...)"
        )
