"""`diff`: the differences between two rule sets, in their tables or in the dtypes of a graph."""

from __future__ import annotations

from typing import overload

from graphir import Graph, GraphError
from graphir.passes.analysis.graph_diff import GraphDiff
from graphir.passes.analysis.rules_diff import RulesDiff
from graphir.promotion import RulesLike
from graphir.promotion import rules as rules_named


@overload
def diff(subject: Graph, before: RulesLike, after: RulesLike | None = None) -> GraphDiff: ...
@overload
def diff(subject: RulesLike, before: RulesLike, after: None = None) -> RulesDiff: ...
def diff(
    subject: Graph | RulesLike,
    before: RulesLike,
    after: RulesLike | None = None,
) -> GraphDiff | RulesDiff:
    """Compare two rule sets: `diff("max", "jax")`, or a graph under both: `diff(g, "max", "jax")`.

    For a graph, the GraphDiff has every symbol whose dtype differs when the program is rebuilt
    under either rule set; `diff(graph, "jax")` compares with the graph's own rules. An array that
    the rules converted as it entered the graph (`max_strict`) counts with its converted dtype.
    Raises GraphError for an explicit graph, and for three rule sets.
    """
    if isinstance(subject, Graph):
        rules = (subject.rules, before) if after is None else (before, after)
        return GraphDiff(subject, rules_named(rules[0]), rules_named(rules[1]))
    if after is not None:
        raise GraphError("diff compares two rule sets, or one graph under two", got="three")
    return RulesDiff(rules_named(subject), rules_named(before))
