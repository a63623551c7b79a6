"""Passes: Graph -> Graph, and questions asked of a graph. None of them changes what it is given."""

from passes.casts import CastReport, CastRow, cast_report
from passes.common_subexpressions import common_subexpressions
from passes.dead_code import dead_code
from passes.diff import diff
from passes.draw import draw
from passes.fold_constants import fold_constants
from passes.graph_diff import GraphDiff
from passes.implicit_cast import implicit_cast
from passes.legalize import legalize
from passes.pipeline import Pipeline, lower
from passes.rebuild import rebuild
from passes.rules_diff import RulesDiff
from passes.simplify_casts import simplify_casts
from passes.weak_types import weak_types

__all__ = [
    "CastReport",
    "CastRow",
    "GraphDiff",
    "Pipeline",
    "RulesDiff",
    "cast_report",
    "common_subexpressions",
    "dead_code",
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
