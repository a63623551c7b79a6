"""A report of casts as JSON (see casts.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graphir.gc_pause import uncollected

if TYPE_CHECKING:
    from passes.analysis.casts import CastReport
    from passes.analysis.casts.sites import CastSite

VERSION = 2
"""Of the format; another for a change that readers of this one would not understand."""


@uncollected
def report_json(report: CastReport) -> str:
    """The report as a JSON document, a line for each site and for each output."""
    head = {
        "version": VERSION,
        "graph": report.graph.name,
        "rules": report.graph.rules.name,
        "against": None if report.against is None else report.against.facts(),
    }
    lists = {
        "unseen": (text(step.to_json()) for step in report.unseen),
        "outputs": (text(output.to_json()) for output in report.outputs),
        "casts": map(_Sites().text, report.sites),
    }
    fields = [f"{text(name)}: {text(value)}" for name, value in head.items()]
    fields += [f"{text(name)}: {listed(values)}" for name, values in lists.items()]
    return "{\n  " + ",\n  ".join(fields) + "\n}"


class _Sites:
    """Encodes sites; what many have in common is encoded once."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def text(self, site: CastSite) -> str:
        """A site as JSON."""
        parts = [self._texts.get(id(part)) or self._new(part) for part in site.row.shared_facts()]
        return f"{{{', '.join(parts)}, {text(site.facts())[1:]}"

    def _new(self, part: Mapping[str, Any]) -> str:
        text_ = self._texts[id(part)] = text(part)[1:-1]
        return text_


text = json.JSONEncoder().encode
"""A value as JSON on one line."""


def listed(values: Iterable[str]) -> str:
    """JSON values as an array, each on a line of its own."""
    lines = ",\n    ".join(values)
    return f"[\n    {lines}\n  ]" if lines else "[]"


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of these documents."""
    from importlib.resources import files

    return json.loads(files("passes.reports").joinpath("casts.schema.json").read_text("utf-8"))
