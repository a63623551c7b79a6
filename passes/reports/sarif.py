"""A report of casts as SARIF 2.1.0, by which code hosts annotate the lines of a change."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from graphir.pictures.levels import Level
from graphir.printable import printable
from graphir.uncollected import uncollected
from passes.casts.fixes import replacement
from passes.reports import words
from passes.reports.json_ import joined, listed, text
from passes.reports.places import Region, region, whole
from passes.reports.sharing import Shared

if TYPE_CHECKING:
    from passes.casts import CastReport, CastRow

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

SEVERITIES: dict[Level, str] = {
    "value": "error",
    "range": "error",
    "precision": "warning",
    "exact": "note",
}
"""How grave an implicit cast is, by what it can lose; one that the program wrote is a note."""


@uncollected
def report_sarif(report: CastReport) -> str:
    """The report as a SARIF log of one run, a rule for each kind of loss, a result for each row.

    Columns count characters. Files are given relative to the working directory, as %SRCROOT%.
    """
    results = _Results()
    head = {"tool": {"driver": _driver()}, "columnKind": "unicodeCodePoints"}
    parts = text(head)[1:-1], f'"results": {listed(map(results.of, report))}'
    run = ", ".join(parts)
    return f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{{run}}}]}}'


def _driver() -> dict[str, Any]:
    return {"name": "graphir", "rules": [_rule(one) for one in words.MEANINGS]}


def _rule(one: Level) -> dict[str, Any]:
    means = words.MEANINGS[one]
    advice = (
        "Nothing is lost; the cast costs memory and time."
        if one == "exact"
        else "Cast the operands to a dtype that holds the values of both, or write the cast down "
        "where the loss is meant."
    )
    return {
        "id": f"cast/{one}",
        "name": f"Cast{one.capitalize()}",
        "shortDescription": {"text": f"An implicit cast: {means}"},
        "fullDescription": {"text": f"A conversion between dtypes in which {means}."},
        "help": {"text": f"A conversion between dtypes in which {means}. {advice}"},
        "defaultConfiguration": {"level": SEVERITIES[one]},
    }


class _Facts(NamedTuple):
    """What the results of rows that are alike have in common."""

    result: str  # as JSON
    message: str
    identity: str


class _Results:
    """Results in the making: those that are alike are told apart by their number."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._facts = Shared(_facts)
        self._causes = Shared(_related)

    def of(self, row: CastRow) -> str:
        """The result of a row, as JSON."""
        facts = self._facts(row)
        message = {"text": _plain("; ".join([facts.message, *words.measured(row)]))}
        own = {"message": message, "partialFingerprints": {"cast/v1": self._fingerprint(facts)}}
        result = joined(facts.result, text(own))
        return result if row.cause is None else joined(result, self._causes(row.cause))

    def _fingerprint(self, facts: _Facts) -> str:
        """The same while lines move: what is cast in which text, and the how many-th of them."""
        self._seen[facts.identity] += 1
        named = f"{facts.identity}\0{self._seen[facts.identity]}"
        return hashlib.sha256(named.encode(errors="replace")).hexdigest()[:32]


def _facts(row: CastRow) -> _Facts:
    worst, found = words.level(row), row.expression
    result: dict[str, Any] = {
        "ruleId": f"cast/{worst}",
        "ruleIndex": list(words.MEANINGS).index(worst),
        "level": SEVERITIES[worst] if row.kind in ("implicit", "literal") else "note",
        "locations": [_location(row)],
    }
    if row.location.file and (written := replacement(row)):
        result["fixes"] = [_fix(row, written)]
    lost = f"{words.conversion(row)} {words.why(row)}, {words.what(row)}: {row.loss}"
    message = f"{lost}; write {printable(row.fix)}" if row.fix else lost
    identity = (row.location.file, row.layer, found.brief if found else "", lost)
    return _Facts(text(result), message, "\0".join(identity))


def _related(cause: CastRow) -> str:
    """The place of the cast from which a result follows, as JSON."""
    note = {"message": {"text": f"it follows from {words.conversion(cause)} here"}}
    return text({"relatedLocations": [{"id": 1, **_location(cause), **note}]})


def _location(row: CastRow) -> dict[str, Any]:
    place = region(row)
    layer = printable(row.layer) or printable(row.symbol.graph.name) or "graph"
    found: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": layer}]}
    if place.file and place.line > 0:
        found["physicalLocation"] = {"artifactLocation": _file(place), "region": _of(place)}
    return found


def _fix(row: CastRow, written: str) -> dict[str, Any]:
    place = whole(row.location)
    change = {"deletedRegion": _of(place), "insertedContent": {"text": written}}
    return {
        "description": {"text": _plain(f"Write {printable(row.fix)}")},
        "artifactChanges": [{"artifactLocation": _file(place), "replacements": [change]}],
    }


def _plain(message: str) -> str:
    """A message in which brackets do not make links."""
    return message.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _of(place: Region) -> dict[str, int]:
    found = {"startLine": place.line}
    if place.known:
        ends = {"endLine": place.end_line, "endColumn": max(place.end_column, 1)}
        return {**found, "startColumn": max(place.column, 1), **ends}
    return found


def _file(place: Region) -> dict[str, str]:
    path = Path(place.file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {
        "uri": quote(place.file.replace(os.sep, "/"), errors="replace"),
        "uriBaseId": "%SRCROOT%",
    }
