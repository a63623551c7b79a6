"""Graphs drawn from the op catalogue: text, verifier, passes and both ways to run them agree."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, Op, Symbol, ops
from graphir.ops.attribute_record import content_of
from graphir.ops.control import with_bodies
from graphir.passes import (
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
from graphir.passes.rewriter import bodies_of
from graphir.runtime import execute, interpret
from graphir.text.printer import large_constants
from tests.support.control_flow import flow_programs
from tests.support.drawing import Program, programs
from tests.support.evaluator import FUNCTIONS, agree, evaluate, outcome
from tests.support.strategies import MAX_DTYPES, draws
from tests.support.tables import every, sampled

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
    check_passes(program, meaning)
    assert agree(outcome(execute, graph, *program.inputs), meaning)


def check_passes(program: Program, meaning: Any) -> None:
    graph = program.graph
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
    is_explicit(explicit)
    is_machine(legal)
    is_machine(lower(graph))
    is_final(lower(graph))


def reads_back(graph: Graph) -> None:
    """Printed and parsed, a graph is the same graph."""
    text = str(graph)
    parsed = Graph.parse(text, large_constants(graph)).verify()
    assert str(parsed) == text
    is_same(graph, parsed)
    is_same(graph, pickle.loads(pickle.dumps(graph)))


def is_same(graph: Graph, other: Graph) -> None:
    """Whether the symbols are equal, those of the graphs of control flow too."""
    both = [sorted(each.symbols, key=lambda x: x.op is not ops.input) for each in (graph, other)]
    for x, y in zip(*both, strict=True):  # the header of a text has the inputs
        assert (x.op, x.type, x.origins) == (y.op, y.type, y.origins)
        assert x.op is ops.input or x.location == y.location
        for body, other_body in zip(bodies_of(x), bodies_of(y), strict=True):
            is_same(body, other_body)
        contents = [content_of(with_bodies(each.attrs, repeat(None))) for each in (x, y)]
        assert contents[0] == contents[1] or _has_nan(x.attrs)


def _has_nan(attrs: dict[str, Any]) -> bool:
    """Whether there is a NaN, whose payload text does not keep."""
    value = attrs.get("value", attrs.get("epsilon", 0))
    with np.errstate(invalid="ignore"):  # a signaling NaN
        return bool(np.any(np.not_equal(value, value)))


def is_explicit(graph: Graph) -> None:
    assert implicit_cast(graph) is graph
    for each in all_graphs(graph):
        assert each.rules.name == "explicit"
        for symbol in each.symbols:
            wanted = each.infer(symbol.op, symbol.args, symbol.attrs)
            assert symbol.op is ops.part or wanted.operands == dtypes_of(*symbol.args), repr(symbol)
            for body, dtypes in zip(bodies_of(symbol), wanted.outputs, strict=True):
                assert dtypes_of(*body.outputs) == dtypes


def is_machine(graph: Graph) -> None:
    for symbol in (symbol for each in all_graphs(graph) for symbol in each.symbols):
        dtypes = {str(dtype) for dtype in dtypes_of(symbol, *symbol.args)}
        is_legal = not symbol.op.computes or dtypes <= MACHINE or is_numpys_own(symbol)
        assert is_legal, repr(symbol)
        assert not any(part.dtype.weak for part in symbol.type.parts)


def is_numpys_own(symbol: Symbol) -> bool:
    """Whether an op is left in a narrow dtype, as its meaning is what NumPy does in that dtype.

    Wide sums at indices would not round each sum; tensor_float32 is not of NumPy. The order in
    which an unstable sort of float16 leaves equal values is that of NumPy's algorithm for float16.
    """
    if symbol.op is ops.index_add:
        dtype, updates, _ = dtypes_of(*symbol.args)
        return dtype is updates is symbol.dtype and dtype is not DType.tensor_float32
    is_unstable = symbol.op in (ops.sort, ops.argsort) and not symbol.attrs["stable"]
    return is_unstable and symbol.args[0].dtype is DType.float16


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """The graph, and those of its control flow."""
    yield graph
    for symbol in graph.symbols:
        for body in bodies_of(symbol):
            yield from all_graphs(body)


def dtypes_of(*symbols: Symbol) -> tuple[DType, ...]:
    return tuple(part.dtype for symbol in symbols for part in symbol.type.parts)


def is_final(graph: Graph) -> None:
    """Lowered, a graph is left as it is by every pass, also after a way through text."""
    assert lower(graph) is graph
    if any(_has_nan(symbol.attrs) for each in all_graphs(graph) for symbol in each.symbols):
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


@draws(8, 100, flow_programs())
def test_graphs_with_control_flow(program: Program) -> None:
    graph = program.graph.verify()
    note(str(graph))
    check_passes(program, outcome(interpret, graph, *program.inputs))


@given(flow_programs(), st.permutations([weak_types, legalize, *OPTIMIZING, *OPTIMIZING]))
def test_passes_in_any_order_on_control_flow(program: Program, steps: list[Any]) -> None:
    test_passes_in_any_order.hypothesis.inner_test(program, steps)


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


@pytest.mark.drawn
@sampled(4)
@every("op", SOME)
def test_the_independent_evaluator_on_every_op_it_knows(op: Op) -> None:
    @seed(zlib.crc32(op.name.encode()))
    @settings(max_examples=max(settings().max_examples // 4, 5))
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
