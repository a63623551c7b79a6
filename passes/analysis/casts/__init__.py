"""The cast report: location, rule set, lattice path and possible loss of each cast."""

from passes.analysis.casts.conversion import Kind
from passes.analysis.casts.measured import Measured, OutputError, Unseen
from passes.analysis.casts.report import CastReport, cast_report
from passes.analysis.casts.rows import CastRow

__all__ = ["CastReport", "CastRow", "Kind", "Measured", "OutputError", "Unseen", "cast_report"]
