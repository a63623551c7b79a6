"""Rows: what a row refuses by its signature, how a trial ends, and how integers divide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import Graph, GraphError, Symbol, ops
from graphir.runtime import interpret
from graphir.runtime.sources.op_rows import OpRows, RowCall, trial
from tests.support.tables import every

ROWS = OpRows("sin sub=subtract", frozenset(["layout"]))


@ROWS.row("power")
def _power(e: RowCall, x: Symbol, *, exponent: int) -> Symbol:
    return e(ops.pow, x, e.constant(exponent, x.dtype))


def call() -> tuple[RowCall, Symbol]:
    graph = Graph("rows", rules="explicit")
    x = graph.input("float32", (2,))
    return RowCall(graph, "op", [x.type]), x


@every(
    "name, operands, attributes, ops_added",
    [
        ("sin", 1, {}, ["sin"]),
        ("sub", 2, {}, ["subtract"]),
        ("sub", 1, {}, None),  # too few operands
        ("power", 1, {"exponent": 2, "layout": "nchw", "mode": None, "axes": ()}, None),
        ("power", 1, {"exponent": 2, "mode": "fast"}, None),  # which the row does not know
        ("power", 1, {}, None),
    ],
)
def test_a_row_gets_what_its_signature_names(
    name: str, operands: int, attributes: dict[str, Any], ops_added: list[str] | None
) -> None:
    e, x = call()
    is_covered = ops_added is not None or attributes.keys() >= {"exponent", "layout"}
    results = ROWS.results(ROWS[name], e, [x] * operands, attributes)
    assert (results is not None) is is_covered
    if ops_added is not None:
        assert [symbol.op.name for symbol in e.graph.symbols[1:]] == ops_added


def test_a_trial_leaves_nothing_of_a_refusal_and_raises_a_fault_in_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    e, x = call()
    notes: list[Exception] = []
    for refusal in (GraphError("no"), NotImplementedError(), ValueError("no"), MemoryError()):
        with trial(e.graph, notes.append):
            e(ops.sin, x)
            raise refusal
    assert len(e.graph.symbols) == 1
    assert [type(note) for note in notes] == [ValueError, MemoryError]
    with pytest.raises(AssertionError, match="a row has a fault: KeyError"), trial(e.graph):
        raise KeyError("axis")
    monkeypatch.setattr(OpRows, "raises_faults", False)
    with trial(e.graph, notes.append):
        e(ops.sin, x)
        raise KeyError("axis")
    assert len(e.graph.symbols) == 1 and type(notes[-1]) is KeyError


def test_integers_divide_towards_0() -> None:
    graph = Graph("division", rules="explicit")
    x, y = graph.input("int8", (4,)), graph.input("int8", (4,))
    graph.output(RowCall(graph, "div", [x.type]).divide_integers(x, y, are_natural=False))
    operands = np.array([-7, 7, -7, -128], "int8"), np.array([2, -2, -2, -1], "int8")
    np.testing.assert_array_equal(interpret(graph, *operands), [-3, -3, 3, -128])
