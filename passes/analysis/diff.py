"""What changes with the rules: cells of two tables, or symbols of a program."""

from __future__ import annotations

from typing import overload

from graphir import Graph, GraphError, PromotionRules
from graphir.promotion import rules as rules_named
from passes.analysis.graph_diff import GraphDiff
from passes.analysis.rules_diff import RulesDiff


@overload
def diff(
    subject: Graph, before: str | PromotionRules, after: str | PromotionRules | None = None
) -> GraphDiff: ...
@overload
def diff(
    subject: str | PromotionRules, before: str | PromotionRules, after: None = None
) -> RulesDiff: ...
def diff(
    subject: Graph | str | PromotionRules,
    before: str | PromotionRules,
    after: str | PromotionRules | None = None,
) -> GraphDiff | RulesDiff:
    """What two rule sets answer differently: `diff("max", "jax")`, `diff(graph, "max", "jax")`.

    Of a graph: every symbol whose dtype changes as the program is built again under either;
    `diff(graph, "jax")` compares with its own rules. An array that the rules converted as it
    entered the graph (`max_strict`) counts as what it became. Raises GraphError for an explicit
    graph.
    """
    if isinstance(subject, Graph):
        rules = (subject.rules, before) if after is None else (before, after)
        return GraphDiff(subject, rules_named(rules[0]), rules_named(rules[1]))
    if after is not None:
        raise GraphError("diff compares two rule sets, or one graph under two", got="three")
    return RulesDiff(rules_named(subject), rules_named(before))
