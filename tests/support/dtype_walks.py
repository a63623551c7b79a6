"""A walk of dtypes and one with edits that change nothing: they must agree."""

from __future__ import annotations

from graphir import Graph
from graphir.passes.analysis.explanations.dtype_walk import ProgramFacts
from graphir.passes.analysis.explanations.entries import EntryWalk


def unedited(graph: Graph) -> None:
    """A walk finds the same entries if any symbol is edited to the dtype that the walk gives it."""
    facts = ProgramFacts(graph, graph.inputs[:1])
    walk = EntryWalk(facts)
    steps = [entry.step.index for entry in walk.entries]
    for symbol in graph.symbols:
        if symbol.index not in steps and walk.dtypes[symbol.index] is not None:
            trial = EntryWalk(facts, edits={symbol.index: walk.dtypes[symbol.index]})
            assert [entry.step.index for entry in trial.entries] == steps, symbol
            assert trial.dtypes == walk.dtypes
