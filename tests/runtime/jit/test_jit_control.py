"""Control flow in jitted functions: bodies compute as the same Python loops on arrays do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import note
from hypothesis import strategies as st

from graphir import DType, Graph, GraphError, ShapeError, control, trace
from graphir.control import cond, fori_loop, scan, while_loop
from graphir.runtime import jit, record
from tests.support.evaluator import same
from tests.support.strategies import draws
from tests.support.tables import every


def copied(value: Any) -> Any:
    """Arrays with memory of their own, in the same nested tuples."""
    return tuple(copied(each) for each in value) if isinstance(value, tuple) else np.copy(value)[()]


class PlainControl:
    """The functions of graphir.control as Python's own control flow; bodies get copies."""

    @staticmethod
    def cond(pred: Any, on_true: Any, on_false: Any, *operands: Any) -> Any:
        return (on_true if pred else on_false)(*copied(operands))

    @staticmethod
    def switch(index: Any, branches: Any, *operands: Any) -> Any:
        return branches[min(max(index, 0), len(branches) - 1)](*copied(operands))

    @staticmethod
    def while_loop(condition: Any, body: Any, init: Any) -> Any:
        value = copied(init)
        while condition(copied(value)):
            value = copied(body(copied(value)))
        return value

    @staticmethod
    def fori_loop(lower: Any, upper: Any, body: Any, init: Any) -> Any:
        value = copied(init)
        for i in range(lower, upper):
            value = copied(body(np.int64(i), copied(value)))
        return value

    @staticmethod
    def scan(function: Any, init: Any, xs: Any, reverse: bool = False) -> Any:
        value, ys = copied(init), []
        for row in xs[::-1] if reverse else xs:
            value, y = function(copied(value), copied(row))
            ys.append(copied(y))
        return value, np.stack(ys[::-1] if reverse else ys)

    @staticmethod
    def map(function: Any, xs: Any) -> Any:
        return np.stack([function(copied(row)) for row in xs])


TABLE = np.arange(4.0)


def newton(cf: Any, x: Any) -> Any:
    return cf.while_loop(lambda y: abs(y * y - x).max() > 1e-9, lambda y: (y + x / y) * 0.5, x + 1)


def row_wise(cf: Any, x: Any) -> Any:
    return cf.scan(lambda c, row: (c + row * x[0], np.sin(c)), 0 * x[0], x, reverse=True)


def writes_to_its_arguments(cf: Any, x: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        v[i] *= 3
        part = v[1:]
        part[v[1:] > 5] = -1.0
        v += i
        return v

    return cf.fori_loop(0, 3, body, x), x


def writes_to_its_own(cf: Any, x: Any) -> Any:
    def body(row: Any) -> Any:
        out = np.zeros(3)
        out[0] = row
        out[1:] = x[:2] + row
        total = row
        total += 1
        return out * total

    return cf.map(body, x)


def views_of_outer_arrays(cf: Any, x: Any) -> Any:
    y = x * 2
    z, flat = y[1:][::-1], y.reshape(2, -1)
    y[2] = 5
    inside = cf.cond(x[0] > 0, lambda: z + z, lambda: z * flat[1, 1])
    y[1] = 7
    again = cf.cond(x[0] > 0, lambda: z - flat.T[0, 0], lambda: z)
    return inside, again, z, flat


def arrays_of_constants(cf: Any, x: Any) -> Any:
    weights = np.linspace(0, 1, 4)
    weights[2] = 9

    def body(i: Any, v: Any) -> Any:
        return v * weights[::-1] + TABLE

    first = cf.fori_loop(0, 2, body, x)
    weights[0] = -1
    return first, cf.fori_loop(0, 2, body, x), weights


def nested(cf: Any, x: Any) -> Any:
    k = x[1:3]

    def body(i: Any, v: Any) -> Any:
        w = v + k.sum()
        return cf.cond(i > 1, lambda a: a * k[0] + w, lambda a: cf.map(lambda r: r + k[1], w), v)

    return cf.fori_loop(0, 4, body, x), k


def keeps_scalars(cf: Any, x: Any) -> Any:
    def body(s: Any) -> Any:
        i, total = s
        total += x[i]
        i += 1
        return i, total

    return cf.while_loop(lambda s: s[0] < 3, body, (np.int64(0), np.float64(0)))[1]


def chooses(cf: Any, x: Any) -> Any:
    i = np.argmax(x)
    return cf.switch(i, [lambda v: v, lambda v: v[::-1], np.sort], x)


def swaps(cf: Any, x: Any) -> Any:
    return cf.fori_loop(0, 5, lambda i, s: (s[1], s[0], s[0]), (x, x[::-1], x))


PROGRAMS: tuple[Callable[..., Any], ...] = (
    *(newton, row_wise, writes_to_its_arguments, writes_to_its_own, views_of_outer_arrays),
    *(arrays_of_constants, nested, keeps_scalars, chooses, swaps),
)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [np.asarray(value)]


@every("program", PROGRAMS)
def test_programs(program: Any) -> None:
    compiled = jit(lambda x: program(control, x))
    for x in (np.array([1.0, 2.5, 3.0, 0.25]), np.array([-1.0, 2.0, 0.5, 3.0])):
        if program is newton:
            x = abs(x)
        mine, theirs = x.copy(), x.copy()
        for _ in range(2):
            results, expected = leaves(compiled(mine)), leaves(program(PlainControl, theirs))
            assert len(results) == len(expected)
            assert all(map_pairs(same, results, expected))
            assert same(mine, theirs)


def map_pairs(function: Any, a: Any, b: Any) -> Any:
    return [function(x, y) for x, y in zip(a, b, strict=True)]


STATEMENTS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "item": lambda a, b, k, i: (put(a, i % 4, b[0] + 1), b),
    "slice": lambda a, b, k, i: (put(a, slice(1, 3), b[:2] * 0.5), b),
    "shift": lambda a, b, k, i: (put(a, slice(1, None), a[:-1] + b[1:]), b),
    "strided": lambda a, b, k, i: (*(put(a[::2], slice(None), k[::2]), a)[1:], b),
    "captured": lambda a, b, k, i: (a, put(b, slice(None), k)),
    "swap": lambda a, b, k, i: (b, a),
    "same": lambda a, b, k, i: (a, a),
    "keeps": lambda a, b, k, i: (k, b),
    "grows": lambda a, b, k, i: (a * 1.25 + i, np.sin(b)),
    "reversed": lambda a, b, k, i: (a[::-1], b),
    "joined": lambda a, b, k, i: (np.concatenate([b[2:], a[:2]]), b),
    "old": lambda a, b, k, i: (put(a.copy(), 2, -1.0), a + b),
    "scalar": lambda a, b, k, i: (put(a, 0, a.sum()), b - a[i % 4]),
}


def put(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


@draws(
    12,
    150,
    st.lists(st.sampled_from(list(STATEMENTS)), min_size=1, max_size=5),
    st.sampled_from(("fori", "scan", "nested")),
    st.integers(0, 4),
)
def test_updates_of_carries(names: list[str], kind: str, turns: int) -> None:
    """A loop may write into its own memory, and never into that of the caller."""

    def body(i: Any, state: Any, k: Any) -> Any:
        for name in sorted(names, key="keeps".__eq__):  # nothing may write to `k` itself
            state = STATEMENTS[name](*state, k, i)
        return state

    def program(cf: Any, x: Any, k: Any) -> Any:
        if kind == "fori":
            return cf.fori_loop(0, turns, lambda i, s: body(i, s, k), (x, x))
        if kind == "nested":
            inner = lambda i, s: cf.fori_loop(0, 2, lambda j, t: body(i + j, t, k), s)  # noqa: E731
            return cf.fori_loop(0, turns, inner, (x, k))
        rows = np.arange(turns + 1)

        def step(s: Any, i: Any) -> Any:
            new = body(i, s, k)
            return new, new[0] + s[1]

        return cf.scan(step, (x, k + 0), rows)

    note(f"{names}, {kind}, {turns}")
    compiled = jit(lambda x, k: program(control, x, k))
    x, k = np.array([1.0, 2.5, 3.0, 0.25]), np.array([0.5, -1.0, 2.0, 8.0])
    mine, theirs = (x.copy(), k.copy()), (x.copy(), k.copy())
    for _ in range(2):
        results = leaves(compiled(*mine))
        assert all(map_pairs(same, results, leaves(program(PlainControl, *theirs))))
        assert all(map_pairs(same, mine, theirs))
        for i, result in enumerate(results):
            assert not any(np.shares_memory(result, other) for other in (*mine, *results[:i]))


def test_captured_arrays_are_inputs() -> None:
    table = np.arange(3.0)
    compiled = jit(lambda x: fori_loop(0, 2, lambda i, v: v * table + table[1], x))
    for factor in (1.0, 3.0):
        table *= factor
        x = np.ones(3)
        assert same(compiled(x), (x * table + table[1]) * table + table[1])


def test_numbers_of_a_call_in_a_body() -> None:
    compiled = jit(lambda x, n, a: fori_loop(0, n, lambda i, v: v * a + n, x))
    for n, a in ((3, 2.5), (4, 2.5), (4, 0.5), (0, 1.5)):
        x = np.ones(2, np.float32)
        for _ in range(n):
            x = x * a + n
        assert same(compiled(np.ones(2, np.float32), n, a), x)


def test_writes_to_outer_arrays_are_refused() -> None:
    known = np.zeros(3)

    def outside(x: Any, y: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            y[0] = 1.0
            return v

        return fori_loop(0, 2, body, x)

    targets: list[Callable[[Any], Any]] = [
        lambda x: outside(x, x),
        lambda x: outside(x, x + 1),
        lambda x: outside(x, x[1:]),
        lambda x: outside(x, np.zeros(3)),
        lambda x: cond(x[0] > 0, lambda: np.copyto(x, 0), lambda: None),
        lambda x: control.map(lambda r: np.add(r, 1, out=x), x),
        lambda x: scan(lambda c, r: (x.sort(), c), x, x),
    ]
    for function in targets:
        with pytest.raises(GraphError, match="writes to an array from outside of it"):
            jit(function)(known.copy())


def test_values_of_a_body_do_not_leave_it() -> None:
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        y = fori_loop(0, 2, lambda i, v: kept.append(v) or v * 2, x)
        return y + kept[0]

    with pytest.raises(GraphError, match="return it from the function of control flow"):
        jit(leaking)(np.ones(2))
    kept.clear()
    graph = Graph("leak")
    x = graph.input(DType.float32, (2,))
    fori_loop(0, 2, lambda i, v: kept.append(v) or v * 2, x)
    with pytest.raises(GraphError, match="return it from the function of control flow"):
        x + kept[0]


def test_a_refused_op_in_a_body_leaves_nothing_behind() -> None:
    def careful(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            try:
                v = v + np.ones(7)[1:]
            except (ValueError, TypeError):
                v = v + x
            return v

        return fori_loop(0, 2, body, x)

    assert same(jit(careful)(np.ones(3)), np.full(3, 3.0))
    graph = Graph("careful")
    x, y, z = (graph.input(DType.float32, (n,)) for n in (2, 3, 2))

    def body(i: Any, v: Any) -> Any:
        try:
            v = v + (y + z)
        except ShapeError:
            v = v + z
        return v + y.sum()

    graph.output(fori_loop(0, 2, body, x))
    assert graph.verify().has_bodies


def test_a_function_that_raises_leaves_the_graph_as_it_was() -> None:
    def survives(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            raise KeyError

        try:
            fori_loop(0, 2, body, x)
        except KeyError:
            x = x + 1
        return x * 2

    assert same(jit(survives)(np.ones(3)), np.full(3, 4.0))


def test_python_control_flow_on_values_is_refused_with_the_way_out() -> None:
    for function, way_out in (
        (lambda x: x if x[0] > 1 else x + 1, "graphir.control.cond"),
        (lambda x: [x for _ in range(x[0].astype(int))], "graphir.control.fori_loop"),
        (lambda x: control.map(lambda r: r if r > 0 else -r, x), "graphir.control.cond"),
    ):
        with pytest.raises(TypeError, match=way_out):
            jit(function)(np.ones(3))


def test_without_a_graph_the_call_is_refused() -> None:
    for call in (
        lambda: while_loop(lambda v: v < 3, lambda v: v + 1, 0),
        lambda: cond(np.bool_(True), lambda x: x, lambda x: -x, np.ones(2)),
        lambda: scan(lambda c, x: (c + x, c), np.float64(0), np.ones(3)),
        lambda: record(lambda x: control.map(lambda r: r * 2, x), np.ones(3)),
    ):
        with pytest.raises(GraphError, match=r"no graph is being built; call it in a function"):
            call()


def test_trace_under_other_rules() -> None:
    table = TABLE.astype(np.float32)
    graph = trace(
        lambda x: fori_loop(0, 3, lambda i, v: v * table + i, x), ("float32", (4,)), rules="max"
    ).graph
    assert [x.dtype for x in graph.outputs] == [DType.float32]
