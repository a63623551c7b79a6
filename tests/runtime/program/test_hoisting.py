"""Values that follow from constants alone are computed while a program is planned."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphir import Graph, Symbol, control, ops
from graphir.passes.rewriter import bodies_of
from graphir.runtime import Program, interpret
from graphir.runtime.program.cost_model import COST
from tests.support.evaluator import agree, same
from tests.support.scaled_thresholds import scaled
from tests.support.tables import every

WEIGHTS = np.arange(120 * 100).astype(np.int8).reshape(120, 100)


def dequantized(g: Graph, x: Symbol) -> Symbol:
    scale = g.constant(np.linspace(0.5, 2, 100), "float32")
    weights = ops.subtract(g.constant(WEIGHTS, "int8").cast("float32"), g.scalar["float32"](3.0))
    return x @ ops.multiply(weights, scale)


def transposed(g: Graph, x: Symbol) -> Symbol:
    return x @ ops.transpose(g.constant(WEIGHTS.T.astype("float32"), "float32"), 0, 1)


def broadcast(g: Graph, x: Symbol) -> Symbol:
    each = g.constant(WEIGHTS[:3, :1], "int8").cast("float32")
    return x + ops.broadcast_to(each, (40, 3, 120))


def output(g: Graph, x: Symbol) -> Symbol:
    return ops.negative(g.constant(WEIGHTS, "int8"))


def narrow(g: Graph, x: Symbol) -> Symbol:
    return x.cast("int32") @ g.constant(WEIGHTS, "int8").cast("int32")


def op_names(program: Program) -> set[str]:
    return {symbol.op.name for symbol in program.lowered.symbols}


KEPT = [
    (dequantized, {"input", "constant", "matmul"}),
    (transposed, {"input", "constant", "matmul"}),
    (broadcast, {"input", "constant", "broadcast_to", "add"}),  # a view takes no memory
    (output, {"constant"}),
    (narrow, {"input", "constant", "cast", "matmul"}),  # the product reads int8
]


@every(("make", "names"), KEPT)
def test_large_values_of_constants(make: Any, names: set[str]) -> None:
    graph = Graph("constants", rules="numpy")
    x = graph.input("float32", (3, 120), name="x")
    graph.output(make(graph, x))
    given = np.linspace(-4, 4, 360).astype("float32").reshape(3, 120)
    program, meaning = Program(graph), interpret(graph, given)
    assert op_names(program) - {"input"} == names - {"input"}
    results = [program(given) for _ in range(3)]
    assert all(same(result, meaning) for result in results)
    results[0][...] = 0  # the program's constants are its own
    assert same(program(given), meaning)


def test_the_memory_of_large_values_has_a_limit() -> None:
    graph = Graph("constants", rules="numpy")
    graph.output(dequantized(graph, graph.input("float32", (3, 120))))
    with scaled(1, HOISTED_BYTES=4 * WEIGHTS.size - 1):
        assert 4 * WEIGHTS.size > COST.HOISTED_BYTES
        assert {"cast", "subtract", "multiply"} <= op_names(Program(graph))


def chosen(x: Symbol, w: Symbol) -> Any:
    return control.cond(x[0, 0] > 0, lambda: x @ w.T, lambda: x - w.T[:3])


def chosen_in_turns(x: Symbol, w: Symbol) -> Any:
    return control.while_loop(lambda c: c[0, 0] < 9, lambda c: chosen(c, w) * 0 + c + 1, x)


def scanned(x: Symbol, w: Symbol) -> Any:
    return control.scan(lambda c, row: (c @ w.T, c + row), x, x)


@every("make", [chosen, chosen_in_turns, scanned])
def test_values_of_constants_in_the_graphs_of_control_flow(make: Any) -> None:
    graph = Graph("constants", rules="numpy")
    x = graph.input("float32", (3, 120), name="x")
    weights = np.arange(120 * 120, dtype="float32").reshape(120, 120) / 7200 - 1
    result = make(x, graph.constant(weights, "float32"))
    graph.output(*(result if isinstance(result, tuple) else (result,)))
    given = np.linspace(-4, 4, 360).astype("float32").reshape(3, 120)
    program = Program(graph)
    for values in (given, -given):
        results, meaning = (
            each if isinstance(each, tuple) else (each,)
            for each in (program(values), interpret(graph, values))
        )
        assert agree(results, meaning)
    (flow,) = [x for x in program.lowered.symbols if bodies_of(x)]
    inner = [Program(body) for body in bodies_of(flow)]
    inner += [Program(y) for z in inner for x in z.lowered.symbols for y in bodies_of(x)]
    assert set[str]().union(*map(op_names, inner)).isdisjoint(("transpose", "permute"))
    assert len(flow.args) < 4
