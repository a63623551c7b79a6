"""The cast report: location, rule set, lattice path and possible loss of each cast."""

from passes.analysis.casts.conversion import Kind, StepLoss
from passes.analysis.casts.losses import LossRow
from passes.analysis.casts.measured import Measured, OutputError, Unseen
from passes.analysis.casts.report import CastReport, cast_report, report_with_kernels
from passes.analysis.casts.rows import CastRow

__all__ = [
    "CastReport",
    "CastRow",
    "Kind",
    "LossRow",
    "Measured",
    "OutputError",
    "StepLoss",
    "Unseen",
    "cast_report",
    "report_with_kernels",
]
