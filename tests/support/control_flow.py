"""Hypothesis strategies of graphs with control flow: nested bodies that capture outer values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from graphir import DType, Graph, GraphirError, Op, Symbol, TensorType, control, ops
from graphir.ops.dims import Shape
from tests.support.drawing import (
    DTYPES,
    LARGEST,
    RULES,
    TF32,
    Drawing,
    MisfitError,
    Program,
    allowed,
    inputs_of,
)
from tests.support.strategies import NAMES, arrays, count, known, literals, pool, shapes_of

CATALOGUE = tuple(ops.CATALOGUE.values())
DEPTH = 3
"""The most graphs around an op."""


class FlowDrawing(Drawing):
    """A graph in the making that draws control flow besides the ops of a catalogue.

    `depth` is the number of graphs around it. The graph of a body has no inputs of its own.
    """

    def __init__(
        self,
        draw: Any,
        graph: Graph,
        dtypes: Sequence[DType],
        catalogue: Sequence[Op] = CATALOGUE,
        depth: int = 0,
    ) -> None:
        super().__init__(draw, graph, dtypes)
        self.catalogue, self.depth = catalogue, depth

    def leaf(self, shape: Shape, dtype: DType | None = None) -> Symbol:
        """A new input or constant; in a body a constant, or an array of one value."""
        if not self.depth:
            return super().leaf(shape, dtype)
        dtype = dtype or self.dtype()
        if known(shape) and count(shape) <= 64:
            return self.graph.constant(self.draw(arrays(dtype, shape)), dtype)
        return self.graph.full(self.one_of(*pool(dtype)).item(), shape, dtype)

    def step(self) -> None:
        """Add an op or control flow; nothing where what was drawn does not fit."""
        kind = self.draw(st.integers(0, 5))
        if kind == 5:
            self.again()
        elif kind > 2 and self.depth < DEPTH:
            self.flow(self.one_of(*FLOWS))
        else:
            self.grow(self.draw(st.sampled_from(self.catalogue)))

    def flow(self, kind: Callable[[FlowDrawing], Any]) -> list[Symbol]:
        """Add control flow of a kind; return its results, or none where it does not fit."""
        try:
            with self.graph:
                results = [*kind(self)]
        except GraphirError:
            return []
        if any(count(x.shape) > LARGEST for x in results):
            return []
        self.live += results
        return results

    # -- operands

    def carries(self) -> list[Symbol]:
        """Initial values; a literal among them is weak under rules that have weak dtypes."""
        carries = [self.one_of(*self.live) for _ in range(self.draw(st.integers(0, 2)))]
        if self.draw(st.integers(0, 2)) == 2:
            carries.append(self.graph.scalar(self.draw(literals())))
        return carries

    def rows(self) -> list[Symbol]:
        """Arrays of one length, whose rows the rules can slice, as audits of their loops do."""
        scanned = [x for x in self.live if x.rank and self._is_sliced(x)]
        if not scanned:
            raise MisfitError
        first = self.one_of(*scanned)
        fitting = [x for x in scanned if x.shape[0] == first.shape[0]]
        return [first, *self.draw(st.lists(st.sampled_from(fitting), max_size=1))]

    def _is_sliced(self, x: Symbol) -> bool:
        bounds = {"start": (0,), "stop": (1,), "step": (1,)}
        return allowed(self.graph, ops.slice, [TensorType(x.dtype, (2,))], bounds)

    # -- bodies

    def body(self, arguments: Sequence[Symbol]) -> FlowDrawing:
        """A body in the making: its arguments, some outer values, and what it computes of them."""
        graph = self.graph.trace_state.body
        assert graph is not None
        inner = FlowDrawing(self.draw, graph, self.dtypes, self.catalogue, self.depth + 1)
        inner.live += arguments
        for outer in self.draw(st.lists(st.sampled_from(self.live), max_size=2)):
            captured = graph.captured(outer)
            assert captured is not None
            inner.live.append(captured)
        if not inner.live:
            inner.live.append(inner.leaf(()))
        for _ in range(self.draw(st.integers(0, 3))):
            inner.step()
        return inner

    def like(self, type_: TensorType) -> Symbol:
        """A value of a type, most of the time."""
        fitting = [x for x in self.live if x.shape == type_.shape] or [self.leaf(type_.shape)]
        x = self.one_of(*fitting[::-1])
        if x.type is type_ or self.draw(st.integers(0, 5)) == 5:
            return x
        return self.leaf(type_.shape) if type_.dtype.weak else x.cast(type_.dtype)

    def some(self) -> list[Symbol]:
        """A few values."""
        return self.draw(st.lists(st.sampled_from(self.live[::-1]), min_size=1, max_size=2))


def _branches(drawing: FlowDrawing, number: int) -> list[Callable[..., Any]]:
    types: list[TensorType] = []

    def branch(*arguments: Symbol) -> list[Symbol]:
        inner = drawing.body(arguments)
        results = [inner.like(type_) for type_ in types] or inner.some()
        types[:] = [x.type for x in results]
        return results

    return [branch] * number


def _cond(drawing: FlowDrawing) -> Any:
    truths = [x for x in drawing.live if not x.rank]
    if not truths or drawing.one_of(True, True, False):
        truths = [drawing.leaf((), DType.bool)]
    return control.cond(drawing.one_of(*truths), *_branches(drawing, 2), *drawing.carries())


def _switch(drawing: FlowDrawing) -> Any:
    places = [x for x in drawing.live if not x.rank and x.dtype.is_integer]
    index = drawing.one_of(*places) if places else drawing.places(())
    return control.switch(
        index, _branches(drawing, drawing.draw(st.integers(1, 3))), *drawing.carries()
    )


def _kept(drawing: FlowDrawing, arguments: Sequence[Symbol], carries: int) -> FlowDrawing:
    inner = drawing.body(arguments)
    inner.carried = [inner.like(x.type) for x in arguments[:carries]]
    return inner


def _while(drawing: FlowDrawing) -> Any:
    """A loop of a few turns, which a value of the body may end early."""
    dtype = drawing.one_of(*drawing.integers)
    most = drawing.draw(st.integers(0, 3))

    def condition(state: Any) -> Symbol:
        go = state[0] < drawing.graph.scalar(most, dtype)
        inner = drawing.body(state)
        ends = [x for x in inner.live if x.type is TensorType(DType.bool)]
        return go & inner.one_of(*ends) if ends and inner.one_of(False, True) else go

    def body(state: Any) -> Any:
        inner = _kept(drawing, state[1:], len(state) - 1)
        return [state[0] + drawing.graph.scalar(1, dtype), *inner.carried]

    start = drawing.graph.scalar(0, dtype)
    return control.while_loop(condition, body, [start, *drawing.carries()])


def _fori(drawing: FlowDrawing) -> Any:
    def body(i: Symbol, state: Any) -> Any:
        return _kept(drawing, [*state, i], len(state)).carried

    bounds = drawing.one_of(0, 1, -2), drawing.one_of(0, 1, 2)
    return control.fori_loop(*bounds, body, [*drawing.carries()])


def _scan(drawing: FlowDrawing) -> Any:
    def body(carry: Any, rows: Any) -> Any:
        inner = _kept(drawing, [*carry, *(rows or ())], len(carry))
        return inner.carried, inner.some()

    xs: Any = drawing.rows() if drawing.one_of(True, True, False) else None
    length = None if xs else drawing.dim()
    reverse = drawing.one_of(False, True)
    carry, stacked = control.scan(body, drawing.carries(), xs, length, reverse)
    return [*carry, *stacked]


def _map(drawing: FlowDrawing) -> Any:
    return control.map(lambda row: drawing.body([row]).some(), drawing.rows()[0])


FLOWS = (_cond, _switch, _while, _fori, _scan, _map)


@st.composite
def flow_graphs(
    draw: Any,
    rules: Sequence[str] = RULES,
    dtypes: Sequence[DType] | None = None,
    catalogue: Sequence[Op] = CATALOGUE,
    steps: int = 4,
) -> Graph:
    """Graphs with control flow among up to `steps` ops of a catalogue, in the bodies too.

    `cond`, `switch`, loops, scans and maps, nested; captured values at several depths; carries of
    weak dtypes; scans of no rows. Dims depend on n and m.
    """
    graph = Graph("drawn", rules=draw(st.sampled_from(rules)), tf32=draw(st.sampled_from(TF32)))
    drawing = FlowDrawing(draw, graph, dtypes or DTYPES[graph.rules.name], catalogue)
    drawing.live.append(graph.input(TensorType(drawing.dtype(), NAMES)))
    drawing.live.append(drawing.leaf(draw(shapes_of(2))))
    drawing.live.append(drawing.leaf(()))
    for _ in range(draw(st.integers(0, steps))):
        drawing.step()
    results = drawing.flow(drawing.one_of(*FLOWS))
    more = draw(st.lists(st.sampled_from(drawing.live), max_size=2))
    graph.output(*(results or drawing.live[-1:]), *more)
    return graph


@st.composite
def flow_programs(draw: Any, **settings: Any) -> Program:
    """Graphs with control flow, and inputs at small sizes, 0 and 1 among them."""
    graph: Graph = draw(flow_graphs(**settings))
    return Program(graph, draw(inputs_of(graph)))


# -- loops over scalars

SCALARS = [
    getattr(DType, name)
    for name in (
        *("bool", "int8", "int32", "int64", "uint8", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "tensor_float32", "index"),
    )
]
BINARY = (
    *(ops.add, ops.subtract, ops.multiply, ops.divide, ops.floor_divide, ops.remainder),
    *(ops.maximum, ops.minimum, ops.bitwise_and, ops.bitwise_xor),
)
UNARY = (ops.negative, ops.abs, ops.exp, ops.sin, ops.sqrt, ops.floor, ops.square)
SIZE = 5


class ScalarDrawing:
    """A body in the making: scalars, and arrays of which it reads and writes elements."""

    def __init__(self, draw: Any, depth: int) -> None:
        self.draw, self.depth = draw, depth

    def scalars(self, graph: Any, live: list[Symbol], steps: int) -> list[Symbol]:
        """The live scalars after some steps; a step that does not fit adds none."""
        for _ in range(steps):
            kind = self.draw(st.integers(0, 7))
            try:
                with graph:
                    live = [*live, *self.step(graph, kind, live)]
            except GraphirError:  # the rules refuse many pairs
                continue
        return live

    def step(self, graph: Any, kind: int, live: list[Symbol]) -> list[Symbol]:
        x, y = (self.draw(st.sampled_from(live)) for _ in range(2))
        if kind < 3:
            return [self.draw(st.sampled_from(BINARY))(x, y.cast(x.dtype))]
        if kind == 3:
            return [self.draw(st.sampled_from(UNARY))(x)]
        if kind == 4:
            return [x.cast(self.draw(st.sampled_from(SCALARS)))]
        if kind == 5:
            return [ops.where(x < y.cast(x.dtype), x, y.cast(x.dtype))]
        if kind == 6 and self.depth:
            return self.loop(x, y)
        if kind == 7 and self.depth:
            to = x.dtype
            inner = ScalarDrawing(self.draw, self.depth - 1)

            def branch(v: Symbol) -> Symbol:
                return inner.scalars(v.graph, [v], 2)[-1].cast(to)

            return [control.cond(x < y.cast(to), branch, branch, x)]
        return []

    def loop(self, x: Symbol, y: Symbol) -> list[Symbol]:
        """A loop of a few turns over two scalars, one of which grows as drawn."""
        inner, turns = ScalarDrawing(self.draw, self.depth - 1), self.draw(st.integers(0, 3))

        def body(i: Symbol, state: Any) -> Any:
            a, b = state
            live = inner.scalars(a.graph, [a, b, i], self.draw(st.integers(1, 3)))
            return live[-1].cast(a.dtype), self.draw(st.sampled_from(live)).cast(b.dtype)

        return [*control.fori_loop(0, turns, body, (x, y))]


@st.composite
def scalar_programs(draw: Any) -> tuple[Graph, list[Any]]:
    """A loop over scalars that may read and write elements of an array, and its inputs."""
    dtypes = [draw(st.sampled_from(SCALARS)) for _ in range(3)]
    graph = Graph("loops", rules="max")
    x, y = (graph.input(dtype, ()) for dtype in dtypes[:2])
    table = graph.input(dtypes[2], (SIZE,))
    drawing, turns = ScalarDrawing(draw, 2), draw(st.integers(0, 8))
    writes, reads = draw(st.booleans()), draw(st.booleans())
    far = draw(st.integers(0, 9)) == 0

    def body(i: Any, state: Any) -> Any:
        a, b, v = state
        place = i if far else i % SIZE
        live = [a, b, *([ops.gather(v, place, axis=0)] if reads else [])]
        live = drawing.scalars(a.graph, live, draw(st.integers(1, 5)))
        if writes:
            value = draw(st.sampled_from(live)).cast(v.dtype)
            v = ops.index_update(v, value, place, axis=0)
        return live[-1].cast(a.dtype), draw(st.sampled_from(live)).cast(b.dtype), v

    def row(state: Any, element: Any) -> Any:
        a, b = state
        live = drawing.scalars(a.graph, [a, b, element], draw(st.integers(1, 5)))
        carry = live[-1].cast(a.dtype), draw(st.sampled_from(live)).cast(b.dtype)
        return carry, (live[-1], a)

    with graph:
        if draw(st.booleans()):
            results = control.fori_loop(0, turns, body, (x, y, table))
        else:
            carry, rows = control.scan(row, (x, y), table, reverse=draw(st.booleans()))
            results = *carry, *rows
    graph.output(*results)
    inputs = [
        draw(arrays(dtype, shape)) for dtype, shape in zip(dtypes, ((), (), (SIZE,)), strict=True)
    ]
    return graph, inputs
