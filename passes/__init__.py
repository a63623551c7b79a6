"""Passes (functions Graph -> Graph) and analyses of a graph; none of them changes its argument."""

from typing import TYPE_CHECKING

from graphir.import_names import give_short_name, import_lazily

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport as CastReport
    from graphir.passes.analysis.casts import CastRow as CastRow
    from graphir.passes.analysis.casts import cast_report as cast_report
    from graphir.passes.analysis.diff import GraphDiff as GraphDiff
    from graphir.passes.analysis.diff import RulesDiff as RulesDiff
    from graphir.passes.analysis.diff import diff as diff
    from graphir.passes.analysis.policies import Policy as Policy
    from graphir.passes.analysis.policies import cast_kind as cast_kind
    from graphir.passes.analysis.rebuild import rebuild as rebuild
    from graphir.passes.decompose import decompose as decompose
    from graphir.passes.implicit_cast import implicit_cast as implicit_cast
    from graphir.passes.legalize import legalize as legalize
    from graphir.passes.legalize import weak_types as weak_types
    from graphir.passes.optimizations import common_subexpressions as common_subexpressions
    from graphir.passes.optimizations import dead_code as dead_code
    from graphir.passes.optimizations import fold_constants as fold_constants
    from graphir.passes.optimizations import simplify_casts as simplify_casts
    from graphir.passes.pipeline import Pipeline as Pipeline
    from graphir.passes.pipeline import lower as lower
    from graphir.passes.reports import draw as draw
    from graphir.passes.reports.annotated import Annotated as Annotated
    from graphir.passes.reports.annotated import annotate as annotate

import_lazily(
    __name__,
    {
        "graphir.passes.analysis.casts": "CastReport CastRow cast_report",
        "graphir.passes.analysis.diff": "GraphDiff RulesDiff diff",
        "graphir.passes.analysis.policies": "Policy cast_kind",
        "graphir.passes.analysis.rebuild": "rebuild",
        "graphir.passes.decompose": "decompose",
        "graphir.passes.implicit_cast": "implicit_cast",
        "graphir.passes.legalize": "legalize weak_types",
        "graphir.passes.optimizations": (
            "common_subexpressions dead_code fold_constants simplify_casts"
        ),
        "graphir.passes.pipeline": "Pipeline lower",
        "graphir.passes.reports": "draw",
        "graphir.passes.reports.annotated": "Annotated annotate",
    },
)
give_short_name(__name__)
