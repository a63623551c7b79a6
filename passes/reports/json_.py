"""The JSON writer of cast reports (see casts.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from graphir.decorators import uncollected
from graphir.passes.analysis.casts.measured import plain
from graphir.passes.analysis.explanations.causes import DtypeCause, Remedy
from graphir.passes.reports import phrases
from graphir.passes.reports.sentences import Sentence, answers_of_rows
from graphir.public import DType

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport

VERSION = 3
"""The version of the format; an incompatible change increments it."""


@uncollected
def report_json(report: CastReport) -> str:
    """Return the report as a JSON document, with one line for each site and each output."""
    head = {
        "version": VERSION,
        "graph": report.graph.name,
        "rules": report.graph.rules.name,
        "sentences": report.sentences,
        "against": None if report.against is None else report.against.facts(),
    }
    lists = {
        "causes": (text(_cause(report, x)) for x in answers_of_rows(report)),
        "unseen": (text(step.to_json()) for step in report.unseen),
        "outputs": (text(output.to_json()) for output in report.outputs),
        "losses": (text(facts) for facts in _losses(report)),
        "casts": (
            text(site.to_json()) for site in report.sites if site.row.kind not in phrases.VERBS
        ),
    }
    if report.graph.provenance.library:
        lists["layers"] = (text(layer.to_json()) for layer in report.layers)
    if report.accepted or report.unused:
        places = sorted({place[:2] for place in report.accepted})
        lists["accepted"] = (text({"file": file, "line": line}) for file, line in places)
        lists["unused_ignores"] = (text(x.to_json()) for x in report.unused)
    fields = [f"{text(name)}: {text(value)}" for name, value in head.items()]
    fields += [f"{text(name)}: {json_array(values)}" for name, values in lists.items()]
    return "{\n  " + ",\n  ".join(fields) + "\n}"


def dtypes_json(reports: Mapping[str, CastReport]) -> str:
    """Return a JSON object with a report for each dtype (see report_json)."""
    fields = [f"{text(name)}: {report_json(report)}" for name, report in reports.items()]
    return "{" + ",\n".join(fields) + "}"


def _cause(report: CastReport, sentence: Sentence) -> dict[str, Any]:
    """Return the JSON fields of a cause: `before` and `after` are dtypes, or sizes of errors."""
    cause = sentence.cause
    assert cause is not None
    birth = cause.birth if isinstance(cause, DtypeCause) else None
    return {
        "question": cause.question,
        "text": sentence.text,
        "outputs": [report.output_name(number) for number in cause.outputs],
        "location": cause.place.to_json(),
        "birth": None if birth is None else birth.location.to_json(),
        **{name: _plain(getattr(cause, name)) for name in ("before", "after")},
        "fix": None if cause.fix is None else fix_json(cause.fix),
    }


def _plain(value: DType | float) -> Any:
    return str(value) if isinstance(value, DType) else plain(value)


def fix_json(fix: Remedy) -> dict[str, Any]:
    """Return a remedy as a JSON object."""
    edits = [
        {"location": x.place.to_json(), "text": x.text, "is_code": x.is_code} for x in fix.edits
    ]
    return {
        "edits": edits,
        "grade": fix.grade,
        "wanted": None if fix.wanted is None else str(fix.wanted),
        "loses": None if fix.loses is None else str(fix.loses),
        "error": plain(fix.error),
    }


def _losses(report: CastReport) -> Iterator[dict[str, Any]]:
    """Yield the JSON fields of the steps of arithmetic that lost values."""
    for rank, site in enumerate(report.sites):
        if site.row.kind in phrases.VERBS and site.measured is not None:
            facts, row, measured = site.to_json(), site.row, site.measured
            yield {
                "kind": row.kind,
                "op": row.op,
                "dtype": str(row.source),
                "rank": rank,
                "loss": phrases.loss(site),
                "operands": [str(number) for number in measured.operands],
                "weight": measured.weight,
                "received": plain(measured.received),
                **{name: facts[name] for name in _LOSS_FACTS},
            }


_LOSS_FACTS = ("location", "expression", "fix", "times", "elements", "measured", "shares")


text = json.JSONEncoder().encode
"""Encode a value as JSON on one line."""


def json_array(values: Iterable[str]) -> str:
    """Return JSON texts as a JSON array, with one line for each value."""
    lines = ",\n    ".join(values)
    return f"[\n    {lines}\n  ]" if lines else "[]"


def schema(name: str = "casts") -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the documents of `report_json`, or of `annotated_json`.

    `name` is "casts" or "annotated".
    """
    from importlib.resources import files

    return json.loads(
        files("graphir.passes.reports").joinpath(f"{name}.schema.json").read_text("utf-8")
    )
