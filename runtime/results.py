"""What a run hands back: arrays of their own, one or a tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import ExecutionError, Graph


def results(values: Sequence[NDArray[Any]], inputs: Sequence[NDArray[Any]]) -> Any:
    """The outputs as callers may keep and change them: no input, no constant, not one another."""
    owned: list[NDArray[Any]] = []
    for value in values:
        held = [*inputs, *owned]
        free = value.flags.writeable and not any(np.may_share_memory(value, one) for one in held)
        owned.append(value if free else value.copy())
    return owned[0] if len(owned) == 1 else tuple(owned)


def require_outputs(graph: Graph) -> None:
    """ExecutionError for a graph without outputs."""
    if not graph.outputs:
        raise ExecutionError(
            f"graph {graph.name!r} has no outputs to compute; name them with g.output(...)"
        )
