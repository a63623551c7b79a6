"""Small programs as data, so that one may be built again, line by line, under any rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol, ops, rule_sets, rules

NAMES = [each.name for each in rule_sets() if each.name not in ("explicit", "python")]
DTYPES = [
    *(DType.bool, DType.int8, DType.uint8, DType.int16, DType.int64, DType.uint64),
    *(DType.float16, DType.bfloat16, DType.float32, DType.float64, DType.complex64, DType.index),
]
VALUES = (1, 0, True, 2.5, 300, -1, 0.0, 1j)


class Step(NamedTuple):
    """One symbol: how it is made, of the symbols at two places, of a value and a dtype."""

    kind: str
    op: str
    x: int
    y: int
    value: Any
    dtype: DType


Maker = Callable[[Graph, Symbol, Symbol, Step], Symbol]


def _shared(g: Graph, x: Symbol, y: Symbol, step: Step) -> Symbol:
    both = g.scalar(step.value)
    return (x + both) * (y - both)


# Each on a line of its own, so that places differ.
MAKERS: dict[str, Maker] = {
    "binary": lambda g, x, y, s: getattr(ops, s.op)(x, y),
    "literal": lambda g, x, y, s: x * s.value,
    "reflected": lambda g, x, y, s: s.value - y,
    "named": lambda g, x, y, s: x + g.scalar(s.value),
    "shared": _shared,
    "given": lambda g, x, y, s: g.constant([1, 0, 1], s.dtype) / y,
    "array": lambda g, x, y, s: x * np.ones(3, np.int16),
    "unary": lambda g, x, y, s: getattr(ops, s.op)(x),
    "cast": lambda g, x, y, s: x.cast(s.dtype),
    "chosen": lambda g, x, y, s: ops.where(x == y, s.value, y),
    "full": lambda g, x, y, s: g.full(s.value, (3,)),
    "indexed": lambda g, x, y, s: ops.gather(x.broadcast_to(3), 1, axis=0),
    "layered": lambda g, x, y, s: _layered(g, x, y),
}
BINARY = ("add", "divide", "maximum", "less", "bitwise_and", "left_shift", "logical_or", "pow")
UNARY = ("sin", "sum", "mean", "argmax", "negative", "sqrt", "cumulative_sum", "logical_not", "abs")


def _layered(g: Graph, x: Symbol, y: Symbol) -> Symbol:
    with g.layer("inner"):
        return x + y


def made(g: Graph, live: Sequence[Symbol], step: Step) -> Symbol:
    """The symbol that a step makes."""
    return MAKERS[step.kind](g, live[step.x % len(live)], live[step.y % len(live)], step)


class Program(NamedTuple):
    """Inputs and steps, all of which the rules allow under which it was drawn."""

    rules: str
    inputs: tuple[DType, ...]
    steps: tuple[Step, ...]

    def build(self, under: str | PromotionRules | None = None) -> Graph:
        """The graph, built line by line; raises where these rules refuse a line."""
        g = Graph("program", rules=under or self.rules)
        live = [g.input(dtype, (3,)) for dtype in self.inputs]
        for step in self.steps:
            live.append(made(g, live, step))
        g.output(live[-1])
        return g


@st.composite
def programs(draw: Any, names: Sequence[str] = NAMES) -> Program:
    """Programs of a few steps."""
    name = draw(st.sampled_from(names))
    known = [dtype for dtype in DTYPES if rules(name).has(dtype)]
    inputs = tuple(draw(st.lists(st.sampled_from(known), min_size=2, max_size=3)))
    g = Graph(rules=name)
    live, steps = [g.input(dtype, (3,)) for dtype in inputs], []
    for step in draw(st.lists(_steps(known), max_size=8)):
        try:
            symbol = made(g, live, step)
        except GraphirError:
            continue
        if step.kind == "array" and symbol.args[1].dtype is not DType.int16:
            continue  # converted as it entered: the graph does not know what the program has
        live.append(symbol)
        steps.append(step)
    return Program(name, inputs, tuple(steps))


def _steps(known: Sequence[DType]) -> st.SearchStrategy[Step]:
    return st.sampled_from(list(MAKERS)).flatmap(
        lambda kind: st.builds(
            Step,
            st.just(kind),
            st.sampled_from(UNARY if kind == "unary" else BINARY),
            st.integers(0, 9),
            st.integers(0, 9),
            st.sampled_from(VALUES),
            st.sampled_from(known),
        )
    )
