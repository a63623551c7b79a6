"""A report of casts as JSON (see casts.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passes.casts import CastReport

VERSION = 1
"""Of the format; another for a change that readers of this one would not understand."""


def report_json(report: CastReport) -> str:
    """The report as a JSON document, a line for each cast and for each output."""
    head = {"version": VERSION, "graph": report.graph.name, "rules": report.graph.rules.name}
    lists = {
        "outputs": (one.to_json() for one in report.outputs),
        "casts": (row.to_json() for row in report),
    }
    fields = [f"{_text(name)}: {_text(value)}" for name, value in head.items()]
    fields += [f"{_text(name)}: {rows(values)}" for name, values in lists.items()]
    return "{\n  " + ",\n  ".join(fields) + "\n}"


def rows(values: Iterable[Any]) -> str:
    """A JSON array, each value on a line of its own."""
    lines = ",\n    ".join(map(_text, values))
    return f"[\n    {lines}\n  ]" if lines else "[]"


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of these documents."""
    from importlib.resources import files

    return json.loads(files("passes.reports").joinpath("casts.schema.json").read_text("utf-8"))


_text = json.JSONEncoder().encode
