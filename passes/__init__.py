"""Passes (functions Graph -> Graph) and analyses of a graph; none of them changes its argument."""

from graphir.import_names import give_short_name
from graphir.passes.analysis.casts import CastReport, CastRow, cast_report
from graphir.passes.analysis.diff import GraphDiff, RulesDiff, diff
from graphir.passes.analysis.policies import Policy
from graphir.passes.analysis.rebuild import rebuild
from graphir.passes.decompose import decompose
from graphir.passes.implicit_cast import implicit_cast
from graphir.passes.legalize import legalize, weak_types
from graphir.passes.optimizations import (
    common_subexpressions,
    dead_code,
    fold_constants,
    simplify_casts,
)
from graphir.passes.pipeline import Pipeline, lower
from graphir.passes.reports import draw
from graphir.passes.reports.annotated import Annotated, annotate

__all__ = [
    "Annotated",
    "CastReport",
    "CastRow",
    "GraphDiff",
    "Pipeline",
    "Policy",
    "RulesDiff",
    "annotate",
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

give_short_name(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
