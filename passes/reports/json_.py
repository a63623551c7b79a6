"""A report of casts as JSON (see casts.schema.json)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passes.casts import CastReport


def report_json(report: CastReport) -> str:
    """The rows as a JSON document."""
    rows = [row.to_json() for row in report]
    return json.dumps({"graph": report.graph.name, "casts": rows}, indent=2)
