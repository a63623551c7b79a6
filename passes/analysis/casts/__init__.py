"""The report of casts: where each arose, by which rule, along which path, and what it can lose."""

from passes.analysis.casts.conversion import Kind
from passes.analysis.casts.measured import Measured, OutputError, Unseen
from passes.analysis.casts.report import CastReport, cast_report
from passes.analysis.casts.rows import CastRow

__all__ = ["CastReport", "CastRow", "Kind", "Measured", "OutputError", "Unseen", "cast_report"]
