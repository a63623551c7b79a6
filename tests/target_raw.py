"""Graphs with operands of mixed dtypes, sent to the checkers of other engines as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import permutations
from typing import Any
from unittest.mock import patch

from graphir import DType, Graph, GraphirError, Op, ops
from passes import implicit_cast
from tests.peers import CALLS

RULES = ("max", "jax", "numpy")
DTYPES = [
    DType(name)
    for name in (
        *("bool", "int8", "uint8", "int32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64"),
    )
]
MODULES = {"jax": "jax_", "stablehlo": "stablehlo", "onnx": "onnx_"}
"""Where each target lowers what it is given."""


@contextmanager
def raw(target: str) -> Iterator[None]:
    """Inside, a target writes graphs as they are, without lowering them first."""
    module = import_module(f"runtime.targets.{MODULES[target]}")
    with patch.object(module, "lower", lambda graph: graph):
        yield


def joining() -> dict[str, Op]:
    """The ops of which two operands or more promote together."""
    found = {}
    for name, call in CALLS.items():
        op = ops.CATALOGUE[name]
        joined = op.signature.joined
        if len(call.free) > 1 and (joined is None or len(joined) > 1):
            found[name] = op
    return found


def mixed(name: str, rules: str) -> Iterator[Graph]:
    """The op on each two dtypes that its rules let it promote."""
    call, op = CALLS[name], ops.CATALOGUE[name]
    for one, other in permutations(DTYPES, 2):
        graph = Graph("mixed", rules=rules)
        dtypes = [one, *[other] * (len(call.free) - 1)]
        operands: list[Any] = call.operands(*dtypes)
        try:
            inputs = [graph.input(*x) for x in operands]
            graph.output(op(*([inputs] if op.variadic else inputs), **call.attrs))
        except GraphirError:
            continue
        if not graph.outputs[0].weak and any(x.op is ops.cast for x in implicit_cast(graph)):
            yield graph
