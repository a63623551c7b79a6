"""The cast report: location, rule set, lattice path and possible loss of each cast."""

from typing import TYPE_CHECKING

from graphir.import_names import import_lazily

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.conversion import Kind as Kind
    from graphir.passes.analysis.casts.conversion import StepLoss as StepLoss
    from graphir.passes.analysis.casts.measured import Measured as Measured
    from graphir.passes.analysis.casts.measured import OutputError as OutputError
    from graphir.passes.analysis.casts.measured import Unseen as Unseen
    from graphir.passes.analysis.casts.report import CastReport as CastReport
    from graphir.passes.analysis.casts.report import LossRow as LossRow
    from graphir.passes.analysis.casts.report import ProgramInterface as ProgramInterface
    from graphir.passes.analysis.casts.report import cast_report as cast_report
    from graphir.passes.analysis.casts.report import report_with_kernels as report_with_kernels
    from graphir.passes.analysis.casts.rows import CastRow as CastRow

import_lazily(
    __name__,
    {
        "graphir.passes.analysis.casts.conversion": "Kind StepLoss",
        "graphir.passes.analysis.casts.measured": "Measured OutputError Unseen",
        "graphir.passes.analysis.casts.report": (
            "CastReport LossRow ProgramInterface cast_report report_with_kernels"
        ),
        "graphir.passes.analysis.casts.rows": "CastRow",
    },
)
