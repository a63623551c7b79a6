"""A report of casts as SARIF 2.1.0, by which code hosts annotate the lines of a change."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from passes.casts.fixes import replacement
from passes.reports import words
from passes.reports.json_ import rows
from passes.reports.places import Region, region, whole

if TYPE_CHECKING:
    from passes.casts import CastReport, CastRow

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

LEVELS: dict[words.Severity, str] = {
    "range": "error",
    "sign": "error",
    "precision": "warning",
    "underflow": "warning",
    "special": "warning",
    "exact": "note",
}
"""How grave an implicit cast is, by what it can lose; one that the program wrote is a note."""


def report_sarif(report: CastReport) -> str:
    """The report as a SARIF log of one run, a rule for each kind of loss, a result for each row.

    Columns count characters. Files are given relative to the working directory, as %SRCROOT%.
    """
    results = _Results()
    head = {"tool": {"driver": _driver()}, "columnKind": "unicodeCodePoints"}
    parts = json.dumps(head)[1:-1], f'"results": {rows(map(results.of, report))}'
    run = ", ".join(parts)
    return f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{{run}}}]}}'


def _driver() -> dict[str, Any]:
    return {"name": "graphir", "rules": [_rule(one) for one in words.SEVERITIES]}


def _rule(one: words.Severity) -> dict[str, Any]:
    means = words.SEVERITIES[one]
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
        "defaultConfiguration": {"level": LEVELS[one]},
    }


class _Results:
    """Results in the making: those that are alike are told apart by their number."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._uris: dict[str, str] = {}

    def of(self, row: CastRow) -> dict[str, Any]:
        worst = words.severity(row)
        implicit = row.kind in ("implicit", "literal")
        result: dict[str, Any] = {
            "ruleId": f"cast/{worst}",
            "ruleIndex": _INDEX[worst],
            "level": LEVELS[worst] if implicit else "note",
            "message": {"text": _message(row)},
            "locations": [self._location(row, region(row))],
            "partialFingerprints": {"cast/v1": self._fingerprint(row)},
        }
        if row.cause is not None:
            note = {"message": {"text": f"follows from {words.conversion(row.cause)} here"}}
            result["relatedLocations"] = [
                {"id": 1, **self._location(row.cause, region(row.cause)), **note}
            ]
        if row.location.file and (text := replacement(row)):
            result["fixes"] = [self._fix(row, text)]
        return result

    def _location(self, row: CastRow, place: Region) -> dict[str, Any]:
        layer = words.printable(row.layer) or words.printable(row.symbol.graph.name) or "graph"
        found: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": layer}]}
        if place.file and place.line > 0:
            found["physicalLocation"] = {
                "artifactLocation": self._file(place),
                "region": _of(place),
            }
        return found

    def _file(self, place: Region) -> dict[str, Any]:
        uri = self._uris.get(place.file)
        if uri is None:
            uri = self._uris[place.file] = _uri(place.file)
        return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": "%SRCROOT%"}

    def _fix(self, row: CastRow, text: str) -> dict[str, Any]:
        place = whole(row.location)
        change = {"deletedRegion": _of(place), "insertedContent": {"text": text}}
        return {
            "description": {"text": f"Write {words.printable(row.fix)}"},
            "artifactChanges": [{"artifactLocation": self._file(place), "replacements": [change]}],
        }

    def _fingerprint(self, row: CastRow) -> str:
        """The same while lines move: what is cast in which text, and the how many-th of them."""
        found = row.expression
        text = found.brief if found else ""
        parts = (row.location.file, row.layer, text, row.op, row.operand, words.conversion(row))
        key = "\0".join(parts)
        self._seen[key] += 1
        return hashlib.sha256(f"{key}\0{self._seen[key]}".encode()).hexdigest()[:32]


_INDEX = {one: at for at, one in enumerate(words.SEVERITIES)}


def _message(row: CastRow) -> str:
    told = [
        f"{words.conversion(row)} {words.why(row)}, {words.what(row)}: {row.loss}",
        *words.measured(row),
    ]
    if fix := row.fix:
        told.append(f"write {words.printable(fix)}")
    # Brackets would be links in messages.
    return "; ".join(told).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _of(place: Region) -> dict[str, int]:
    found = {"startLine": place.line}
    if place.known:
        ends = {"endLine": place.end_line, "endColumn": max(place.end_column, 1)}
        return {**found, "startColumn": max(place.column, 1), **ends}
    return found


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(file.replace(os.sep, "/"))
