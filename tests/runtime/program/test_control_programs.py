"""Programs with control flow are `interpret` to the bit, and their results are nobody else's."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, TensorType, control, ops
from graphir.ops.control import Callee
from graphir.ops.types import OpaqueType, TupleType
from graphir.runtime import Program, execute, interpret
from graphir.runtime.program.blocks import cores
from tests.support.control_flow import flow_programs
from tests.support.drawing import Program as Drawn
from tests.support.evaluator import agree, outcome
from tests.support.program_calls import BLOCKS
from tests.support.strategies import draws


def is_interpreted(program: Program, graph: Graph, *inputs: Any) -> None:
    """In each way of a call; the results are new arrays, which the caller may write into."""
    meaning = outcome(interpret, graph, *inputs)
    before = [x.tobytes() for x in inputs]
    for _ in range(3):
        results = outcome(program, *inputs)
        assert agree(results, meaning)
        if meaning is ExecutionError:
            continue
        for i, x in enumerate(results):
            assert not any(np.shares_memory(x, y) for y in (*inputs, *results[:i]))
            x[...] = 1
    if meaning is not ExecutionError:
        outs = tuple(map(np.empty_like, meaning))
        program(*inputs, out=outs)
        assert agree(outs, meaning)
        assert len(program.explain(*inputs).splitlines()) > len(program.steps)
    assert [x.tobytes() for x in inputs] == before


@draws(10, 100, flow_programs(), st.sampled_from(BLOCKS), st.sampled_from((1, 3)))
def test_graphs_with_control_flow(drawn: Drawn, block: int | None, threads: int) -> None:
    note(f"{drawn.graph}\n{block=}, {threads=}, {drawn.inputs}")
    program = Program(drawn.graph, threads=threads, block=block, native="off")
    is_interpreted(program, drawn.graph, *drawn.inputs)


@given(flow_programs())
def test_machine_code(drawn: Drawn) -> None:
    pytest.importorskip("llvmlite")
    note(f"{drawn.graph}\n{drawn.inputs}")
    is_interpreted(Program(drawn.graph, native="now"), drawn.graph, *drawn.inputs)


def built(function: Any, *inputs: Any, dims: Any = ("n", "m")) -> Graph:
    graph = Graph("built", rules="numpy")
    symbols = [graph.input(DType.from_numpy(x.dtype), dims[: x.ndim]) for x in inputs]
    graph.output(*function(*symbols))
    return graph


def test_values_that_pass_a_loop_unchanged_are_copied_at_the_end() -> None:
    x, k = np.arange(6.0), np.ones(6)

    def swapped(x: Any, k: Any) -> Any:
        table = x.graph.constant(np.arange(6.0), DType.float64)
        loops = control.fori_loop(0, 4, lambda i, v: (v[1], v[0], k, table), (x, x, k, k))
        same = control.cond(x[0] < 1, lambda: (k, k, table), lambda: (x, x, x))
        none = control.fori_loop(0, 0, lambda i, v: v + 1, k)
        return (*loops, *same, none)

    graph = built(swapped, x, k, dims=(6,))
    is_interpreted(Program(graph), graph, x, k)


def test_a_constant_of_weak_dtype_stays_what_it_is() -> None:
    for rules in ("jax", "jax_x32", "torch", "tensorflow"):
        graph = Graph("weak", rules=rules)
        graph.output(graph.input(DType.float32) + 1, graph.scalar(2))
        program = Program(graph)
        program(np.float32(1))[1][...] = 7
        assert program(np.float32(1))[1] == 2


def test_dims_of_the_graph_around() -> None:
    """A body may make arrays of sizes that its own operands do not have."""

    def grown(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return c + x.graph.full(1.0, ("n",), DType.float64).sum(), c

        return control.scan(body, x.sum(), None, length="n")

    graph = built(grown, np.ones(3))
    program = Program(graph)
    for n in (3, 5, 0, 3, 1):
        is_interpreted(program, graph, np.ones(n))


def test_operands_that_are_not_contiguous() -> None:
    def rows(x: Any) -> Any:
        carry, ys = control.scan(lambda c, row: (c + row, row), x[0, ::2] * 0, x[:, ::2])
        return carry, ys, *control.map(lambda r: (r, np.sum(r)), x.T)

    x = np.random.default_rng(1).random((6, 10))
    for each in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, 1)[:, ::2]):
        is_interpreted(Program(built(rows, x), threads=cores()), built(rows, x), each)


def test_large_carries_and_blocks() -> None:
    def decay(c: Any, xs: Any) -> Any:
        return control.scan(lambda c, x: (c * 0.9 + np.tanh(x), c.sum()), c, xs)

    rng = np.random.default_rng(2)
    c, xs = rng.random(70_000), rng.random((5, 70_000))
    for native in ("off", "now"):
        graph = Graph("decay", rules="numpy")
        graph.output(*decay(graph.input("float64", ("n",)), graph.input("float64", ("m", "n"))))
        is_interpreted(Program(graph, threads=2, native=native), graph, c, xs)


def test_an_update_does_not_write_into_an_operand() -> None:
    """Part of a result may be an operand of the loop, and the operand of an update."""

    def updated(x: Any, k: Any) -> Any:
        y = x + 1
        kept, _ = control.fori_loop(0, 2, lambda i, v: (y, v[1] + 1), (y, k))
        once = ops.slice_update(kept, k[1:3], start=(1,), stop=(3,), step=(1,))
        return y, kept, once, ops.slice_update(once, k[:1], start=(5,), stop=(6,), step=(1,))

    x, k = np.arange(6.0), np.ones(6)
    graph = built(updated, x, k, dims=(6,))
    is_interpreted(Program(graph), graph, x, k)


def test_many_threads_call_one_program() -> None:
    def newton(x: Any) -> Any:
        return (control.fori_loop(0, 50, lambda i, y: (y + x / y) * 0.5, x),)

    graph = built(newton, np.ones(3))
    program = pickle.loads(pickle.dumps(Program(graph)))
    arrays = [np.full(3, i + 2.0) for i in range(64)]
    with ThreadPoolExecutor(8) as pool:
        for x, y in zip(arrays, pool.map(program, arrays), strict=True):
            assert agree((y,), (interpret(graph, x),))


def test_errors_name_the_line_in_the_body() -> None:
    """Integer powers refuse negative exponents, whichever way the graph runs."""

    def power(x: Any) -> Any:
        return (control.fori_loop(0, 3, lambda i, v: v ** (v - 2), x),)

    graph = built(power, np.ones(2, np.int64))
    texts: set[str] = set()
    for run in (interpret, execute, Program(graph), Program(graph, native="off")):
        with pytest.raises(ExecutionError, match=r"pow\(.*int64 \*\* -1") as refusal:
            run(graph, np.ones(2, np.int64)) if not isinstance(run, Program) else run(
                np.ones(2, np.int64)
            )
        texts.add(str(refusal.value))
    assert len(texts) == 1
    assert __file__.rsplit("/", 1)[1] in texts.pop()


def test_the_plan_has_the_bodies() -> None:
    graph = built(lambda x: (control.fori_loop(0, 3, lambda i, v: np.sin(v) + x, x),), np.ones(2))
    lines = Program(graph, native="off", threads=1).explain().splitlines()
    names = [line.split(":")[0].split("program ")[1] for line in lines if " steps, " in line]
    assert names == ["built", "<lambda>", "advanced"]
    assert any(line.startswith("       ") and "region [n]: sin, add" in line for line in lines)


def called(function: Any, operands: Any, *types: Any) -> list[Any]:
    attrs = {"callee": Callee("library.function", function), "types": TupleType(types)}
    results = ops.control.call(operands, **attrs)
    return [ops.control.part(results, i) for i in range(len(types))]


VECTOR, NUMBER = TensorType("float64", ("n",)), TensorType("float64")


def test_calls_of_a_library() -> None:
    """In a body too, and of 0-d operands, which reach the function as arrays."""
    kinds: set[type] = set()

    def moments(x: Any) -> Any:
        kinds.add(type(x))
        return x + 1, x.sum()

    def function(x: Any) -> Any:
        y, total = called(moments, [x * 2], VECTOR, NUMBER)
        more = control.fori_loop(0, 3, lambda i, v: called(moments, [v], NUMBER, NUMBER)[0], total)
        (handle,) = called(lambda a: ({"a": a},), [y], OpaqueType("handle"))
        return y, total, more, *called(lambda handle: (handle["a"],), [handle], VECTOR)

    graph = built(function, np.ones(3))
    is_interpreted(Program(graph), graph, np.arange(3.0))
    assert kinds == {np.ndarray}


def test_dims_that_calls_bind() -> None:
    found = TensorType("float64", ("k",))

    def positive(x: Any) -> Any:
        (y,) = called(lambda a: (a[a > 0],), [x], found)
        more = control.fori_loop(0, 2, lambda i, v: v * 2 + y.sum(), y)
        return y * 3, y.graph.full(1.0, ("k",), DType.float64) + y, more, x

    def within(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            (y,) = called(lambda a: (a[a > 0],), [c], found)
            return c - 1, y.sum()

        return control.scan(body, x, length=4)

    for function in (positive, within):
        graph = built(function, np.ones(3))
        program = Program(graph)
        for x in (np.arange(5.0), -np.ones(2), np.ones(4), np.ones(0)):
            is_interpreted(program, graph, x)


def test_a_call_of_another_type_is_refused() -> None:
    graph = built(lambda x: called(lambda a: (a[:1],), [x], VECTOR), np.ones(3))
    for run in (interpret, execute):
        with pytest.raises(ExecutionError, match=r"library.function must give float64\[n\]"):
            run(graph, np.ones(3))
