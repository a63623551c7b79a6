"""Graphs drawn from the op catalogue: text, verifier, passes and both ways to run them agree."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, Op, ops
from graphir.ops.attribute_record import content_of
from graphir.text.printer import large_constants
from passes import (
    Pipeline,
    common_subexpressions,
    dead_code,
    decompose,
    fold_constants,
    implicit_cast,
    legalize,
    lower,
    simplify_casts,
    weak_types,
)
from runtime import execute, interpret
from tests.support.drawing import Program, programs
from tests.support.evaluator import FUNCTIONS, agree, evaluate, outcome
from tests.support.strategies import MAX_DTYPES

MACHINE = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
}
BOUNDED = {name for name, op in ops.CATALOGUE.items() if op.decomposition and op.decomposition.ulps}
OPTIMIZING = (simplify_casts, fold_constants, common_subexpressions, dead_code)


def check(program: Program) -> None:
    graph = program.graph.verify()
    note(str(graph))
    meaning = outcome(interpret, graph, *program.inputs)
    reads_back(graph)
    explicit = implicit_cast(graph)
    committed = weak_types(explicit)
    legal = legalize(committed)
    after = [explicit, committed, legal, lower(graph, verify_each=True), lower(legalize(explicit))]
    after.append(decompose(lower(graph), keep=BOUNDED))
    after += [each(one) for each in OPTIMIZING for one in (graph, explicit, legal)]
    for each in {id(one): one for one in after if one is not graph}.values():
        reads_back(each.verify())
        assert agree(outcome(interpret, each, *program.inputs), meaning), str(each)
    assert agree(outcome(execute, graph, *program.inputs), meaning)
    is_explicit(explicit)
    is_machine(legal)
    is_machine(lower(graph))
    is_final(lower(graph))


def reads_back(graph: Graph) -> None:
    """Printed and parsed, a graph is the same graph."""
    text = str(graph)
    parsed = Graph.parse(text, large_constants(graph)).verify()
    assert str(parsed) == text
    listed = sorted(graph.symbols, key=lambda x: x.op is not ops.input)  # the header has inputs
    for one, other in zip(listed, parsed.symbols, strict=True):
        assert (one.op, one.type, one.origins) == (other.op, other.type, other.origins)
        assert one.op is ops.input or one.location == other.location
        assert content_of(one.attrs) == content_of(other.attrs) or _has_nan(one.attrs)


def _has_nan(attrs: dict[str, Any]) -> bool:
    """Whether there is a NaN, whose payload text does not keep."""
    value = attrs.get("value", attrs.get("epsilon", 0))
    with np.errstate(invalid="ignore"):  # a signaling NaN
        return bool(np.any(np.not_equal(value, value)))


def is_explicit(graph: Graph) -> None:
    assert graph.rules.name == "explicit"
    for symbol in graph.symbols:
        wanted = graph.infer(symbol.op, symbol.args, symbol.attrs).operands
        assert wanted == tuple(arg.dtype for arg in symbol.args), repr(symbol)
    assert implicit_cast(graph) is graph


def is_machine(graph: Graph) -> None:
    for symbol in graph.symbols:
        dtypes = {str(symbol.dtype), *(str(arg.dtype) for arg in symbol.args)}
        assert not symbol.op.computes or dtypes <= MACHINE, repr(symbol)
        assert not symbol.weak


def is_final(graph: Graph) -> None:
    """Lowered, a graph is left as it is by every pass, also after a way through text."""
    assert lower(graph) is graph
    if any(_has_nan(symbol.attrs) for symbol in graph.symbols):
        return  # text keeps no payloads: NaN that differed may be common subexpressions now
    parsed = Graph.parse(str(graph), large_constants(graph))
    assert lower(parsed) is parsed
    for each in (implicit_cast, weak_types, legalize, *OPTIMIZING):
        assert each(parsed) is parsed, each.__name__


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", ops.CATALOGUE.values(), ids=ops.CATALOGUE)
def test_graphs_of_every_op(op: Op) -> None:
    """Every op of the catalogue is drawn, so that one added to it is tested by being there."""
    drawn = 0

    # A seed for each op, or all would have the same graphs around them.
    @seed(zlib.crc32(op.name.encode()))
    @settings(max_examples=max(settings().max_examples // 4, 12))
    @given(programs(op=op))
    def each(program: Program) -> None:
        nonlocal drawn
        drawn += program.graph.outputs[0].op is op
        check(program)

    each()
    assert drawn >= 5


@pytest.mark.exhaustive
@settings(max_examples=settings().max_examples * 4)
@given(programs(steps=25))
def test_large_graphs(program: Program) -> None:
    check(program)


@settings(max_examples=settings().max_examples * 2)
@given(programs(steps=12), st.permutations([weak_types, legalize, *OPTIMIZING, *OPTIMIZING]))
def test_passes_in_any_order(program: Program, steps: list[Any]) -> None:
    note(str(program.graph))
    found = Pipeline([implicit_cast, *steps], verify_each=True)(program.graph)
    meaning = outcome(interpret, program.graph, *program.inputs)
    assert agree(outcome(interpret, found, *program.inputs), meaning), str(found)


SOME = [ops.CATALOGUE[name] for name in FUNCTIONS if name in ops.CATALOGUE]


@settings(max_examples=settings().max_examples * 6)
@given(programs(rules=("max",), dtypes=MAX_DTYPES, catalogue=SOME, steps=10))
def test_interpret_is_what_an_independent_evaluator_finds(program: Program) -> None:
    note(str(program.graph))
    meaning = outcome(interpret, program.graph, *program.inputs)
    if meaning is ExecutionError:
        with pytest.raises(ValueError):
            evaluate(program.graph, program.inputs)
    else:
        assert agree(tuple(evaluate(program.graph, program.inputs)), meaning)


@pytest.mark.parametrize("op", SOME, ids=str)
def test_the_independent_evaluator_on_every_op_it_knows(op: Op) -> None:
    @seed(zlib.crc32(op.name.encode()))
    @settings(max_examples=settings().max_examples // 4)
    @given(programs(op=op, rules=("max",), dtypes=MAX_DTYPES, catalogue=SOME, steps=2))
    def each(program: Program) -> None:
        test_interpret_is_what_an_independent_evaluator_finds.hypothesis.inner_test(program)

    each()


@pytest.mark.exhaustive
def test_every_dtype_is_drawn() -> None:
    seen: set[DType] = set()

    # Between them the two have every dtype, and few rule sets have index.
    @settings(max_examples=max(settings().max_examples * 30, 1500))
    @given(programs(steps=3, rules=("max", "jax")))
    def each(program: Program) -> None:
        seen.update(symbol.dtype for symbol in program.graph.symbols)

    each()
    assert seen == set(DType)
