"""Control flow in jax.lax, of functions that compute the graphs."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (JAX is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir import DType, Graph, Symbol
from graphir.ops.dims import evaluate
from graphir.runtime.targets.jax_.casts import jnp_, lax_

Arrays: TypeAlias = Sequence[Any]


class JaxControl(NamedTuple):
    """A call of an op of control flow: its symbol, and the sizes of named dims.

    `run(graph, arrays)` returns the outputs of a graph.
    """

    symbol: Symbol
    sizes: Mapping[str, int]
    run: Callable[[Graph, Arrays], Arrays]


def _cond(call: JaxControl, operands: Arrays) -> Arrays:
    """Return the results of lax.switch, whose index is clamped before JAX narrows it to int32."""
    branches: Sequence[Graph] = call.symbol.attrs["branches"]
    index, dtype = operands[0], call.symbol.args[0].dtype
    if dtype.narrow:
        index = index.astype(np.int32)
    elif dtype is not DType.bool:
        last = min(len(branches) - 1, int(dtype.max))
        index = jnp_().clip(index, np.zeros((), index.dtype), np.asarray(last, index.dtype))
    functions = [partial(_results, call, branch) for branch in branches]
    return lax_().switch(index.astype(np.int32), functions, *operands[1:])


def _results(call: JaxControl, graph: Graph, *arrays: Any) -> Arrays:
    return tuple(call.run(graph, arrays))


def _while_loop(call: JaxControl, operands: Arrays) -> Arrays:
    condition, body = call.symbol.attrs["condition"], call.symbol.attrs["body"]
    count = len(body.outputs)
    captured = operands[count:]

    def verdict(values: Arrays) -> Any:
        return call.run(condition, [*values, *captured])[0]

    def step(values: Arrays) -> Arrays:
        return _results(call, body, *values, *captured)

    return lax_().while_loop(verdict, step, tuple(operands[:count]))


def _scan(call: JaxControl, operands: Arrays) -> Arrays:
    attrs = call.symbol.attrs
    body, carries, ends = attrs["body"], attrs["carries"], attrs["carries"] + attrs["scanned"]
    captured = operands[ends:]

    def step(values: Arrays, rows: Arrays) -> tuple[Arrays, Arrays]:
        outputs = _results(call, body, *values, *rows, *captured)
        return outputs[:carries], outputs[carries:]

    rows = tuple(operands[carries:ends])
    length = None if rows else evaluate(attrs["length"], call.sizes)
    values, stacked = lax_().scan(step, tuple(operands[:carries]), rows, length, attrs["reverse"])
    return *values, *stacked


def _call(call: JaxControl, operands: Arrays) -> Arrays:
    """Return the results of a function of JAX, which takes and gives JAX arrays in `run`."""
    return call.symbol.attrs["callee"].function.run(*operands)


CONTROL: Mapping[str, Callable[[JaxControl, Arrays], Arrays]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "call": _call,
}
"""The function of each op of control flow."""
