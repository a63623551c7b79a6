"""Passes (functions Graph -> Graph) and analyses of a graph; none of them changes its argument."""

from passes.analysis.casts import CastReport, CastRow, cast_report
from passes.analysis.diff import diff
from passes.analysis.graph_diff import GraphDiff
from passes.analysis.policies import Policy
from passes.analysis.rebuild import rebuild
from passes.analysis.rules_diff import RulesDiff
from passes.common_subexpressions import common_subexpressions
from passes.dead_code import dead_code
from passes.decompose import decompose
from passes.fold_constants import fold_constants
from passes.implicit_cast import implicit_cast
from passes.legalize import legalize
from passes.pipeline import Pipeline, lower
from passes.reports.picture import draw
from passes.simplify_casts import simplify_casts
from passes.weak_types import weak_types

__all__ = [
    "CastReport",
    "CastRow",
    "GraphDiff",
    "Pipeline",
    "Policy",
    "RulesDiff",
    "cast_report",
    "common_subexpressions",
    "dead_code",
    "decompose",
    "diff",
    "draw",
    "fold_constants",
    "implicit_cast",
    "legalize",
    "lower",
    "rebuild",
    "simplify_casts",
    "weak_types",
]


def __dir__() -> list[str]:
    return sorted(__all__)
