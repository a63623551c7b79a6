"""The cast report: location, rule set, lattice path and possible loss of each cast."""

from graphir.passes.analysis.casts.conversion import Kind, StepLoss
from graphir.passes.analysis.casts.measured import Measured, OutputError, Unseen
from graphir.passes.analysis.casts.report import (
    CastReport,
    LossRow,
    ProgramInterface,
    cast_report,
    report_with_kernels,
)
from graphir.passes.analysis.casts.rows import CastRow

__all__ = [
    "CastReport",
    "CastRow",
    "Kind",
    "LossRow",
    "Measured",
    "OutputError",
    "ProgramInterface",
    "StepLoss",
    "Unseen",
    "cast_report",
    "report_with_kernels",
]
