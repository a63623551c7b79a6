"""The audit of random graphs: of every op in the catalogue, under every rule set."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings

from graphir import DType, ExecutionError, ops, rules
from graphir.passes import implicit_cast, lower
from graphir.runtime import audit, interpret
from tests.support.drawing import RULES, Program, programs
from tests.support.evaluator import agree, outcome


def check(program: Program, graph: Any) -> None:
    """What the audit gives is what `interpret` gives, and what it says of it is no nonsense."""
    want = outcome(interpret, graph, *program.inputs)
    if want is ExecutionError:
        with pytest.raises(ExecutionError):
            audit(graph, *program.inputs)
        return
    report = audit(graph, *program.inputs)
    assert agree(report.results, want)
    for output, array in zip(report.outputs, want, strict=True):
        assert output.elements == array.size
        if output.differing is None:
            assert report.unseen
            continue
        assert output.broken <= output.differing <= output.elements
        assert output.differing or not any(output.shares.values())
        shares = [share for share in output.shares.values() if share is not None]  # unknown
        assert all(map(math.isfinite, shares))
    for row in report:
        if row.measured is not None:
            assert row.measured.changed == 0 or not row.exact


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", ops.CATALOGUE.values(), ids=ops.CATALOGUE)
def test_every_op(op: Any) -> None:
    @settings(max_examples=10)
    @given(programs(op=op))
    def run(program: Program) -> None:
        check(program, program.graph)

    run()


@settings(max_examples=60)
@given(programs())
def test_explicit_and_lowered_graphs(program: Program) -> None:
    for graph in (implicit_cast(program.graph), lower(program.graph)):
        check(program, graph)


@settings(max_examples=60)
@given(programs(steps=10))
def test_shares_do_not_depend_on_what_is_kept(program: Program) -> None:
    graph = program.graph
    if outcome(interpret, graph, *program.inputs) is not ExecutionError:
        kept, again = (audit(graph, *program.inputs, memory=size) for size in (1 << 30, 0))
        assert [repr(one) for one in kept.outputs] == [repr(one) for one in again.outputs]


FLOATS = DType.float64, DType.bool
MOSTLY = *FLOATS * 4, DType.int64
KNOWING = [name for name in RULES if all(rules(name).has(dtype) for dtype in MOSTLY)]


@settings(max_examples=2 * settings().max_examples)
@given(programs(dtypes=MOSTLY, rules=KNOWING, steps=8))
def test_what_is_wide_has_no_error(program: Program) -> None:
    graph = program.graph
    assume(all(symbol.dtype in FLOATS for symbol in graph.symbols))
    assume(outcome(interpret, graph, *program.inputs) is not ExecutionError)
    for output in audit(graph, *program.inputs).outputs:
        assert not (output.differing or output.largest or output.rms or output.relative)
