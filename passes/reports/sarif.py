"""The SARIF 2.1.0 writer of cast reports; code hosts annotate lines of a change from SARIF."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from functools import cached_property, lru_cache
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from graphir.decorators import uncollected
from graphir.drawing.loss_levels import Level
from graphir.escape import printable
from graphir.passes.analysis.casts.conversion import SILENT
from graphir.passes.analysis.casts.fixes import replacement
from graphir.passes.reports import phrases
from graphir.passes.reports.json_ import VERSION, json_array, text
from graphir.passes.reports.phrases import SourceRegion, region, whole

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow, Unseen
    from graphir.passes.analysis.casts.sites import CastSite

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

SEVERITIES: dict[Level, str] = {
    "value": "error",
    "range": "error",
    "precision": "warning",
    "exact": "note",
}
"""The SARIF level of an implicit cast, by its loss; the program's own casts are notes."""


MAX_RESULTS, MAX_LOCATIONS = 25_000, 100
"""The most results of a run that GitHub accepts, and the most locations of a result that it keeps.

See "SARIF results exceed limits" in its documentation; the worst results come first.
"""


@uncollected
def report_sarif(report: CastReport) -> str:
    """Return the report as a SARIF log of one run: a rule for each level of loss, a result a site.

    The first results are of the rule audit/unseen, the parts that were not seen. The errors
    of outputs are properties of the run. Columns count characters. File paths are relative to the
    working directory, as %SRCROOT%.
    """
    results = _Results(report)
    head: dict[str, Any] = {"tool": {"driver": _driver()}, "columnKind": "unicodeCodePoints"}
    properties: dict[str, Any] = {}
    omitted = len(report.unseen) + len(report.sites) - MAX_RESULTS
    if omitted > 0:
        what = {"text": f"{omitted} further results are left out: JSON has all"}
        notes = [{"level": "warning", "message": what}]
        head["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
        properties["omitted"] = omitted
    results_text = chain(map(results.of_unseen, report.unseen), map(results.of, report.sites))
    parts = text(head)[1:-1], f'"results": {json_array(islice(results_text, MAX_RESULTS))}'
    if report.sentences:
        properties["sentences"] = report.sentences
    if report.outputs:
        properties["outputs"] = [error.to_json() for error in report.outputs]
    if properties:
        parts = *parts, f'"properties": {text(properties)}'
    run = ", ".join(parts)
    return f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{{run}}}]}}'


def _driver() -> dict[str, Any]:
    rules = [*map(_rule, phrases.MEANINGS), _UNSEEN_RULE, *map(_loss_rule, phrases.VERBS)]
    return {"name": "graphir", "rules": rules, "properties": {"reportVersion": VERSION}}


_UNSEEN_RULE: dict[str, Any] = {
    "id": "audit/unseen",
    "name": "AuditUnseen",
    "shortDescription": {"text": "A part of the program that the report did not see"},
    "fullDescription": {"text": "A part of the program that may hide casts, or an error"},
    "help": {"text": "No result has the casts inside; the message says if an error is unknown"},
    "defaultConfiguration": {"level": "warning"},
}


def _rule(level: Level) -> dict[str, Any]:
    means = phrases.MEANINGS[level]
    advice = (
        "Nothing is lost; the cast costs memory and time."
        if level == "exact"
        else "Cast the operands to a dtype that holds the values of both, or write the cast down "
        "where the loss is meant."
    )
    return {
        "id": f"cast/{level}",
        "name": f"Cast{level.capitalize()}",
        "shortDescription": {"text": f"An implicit cast: {means}"},
        "fullDescription": {"text": f"A conversion between dtypes in which {means}."},
        "help": {"text": f"A conversion between dtypes in which {means}. {advice}"},
        "defaultConfiguration": {"level": SEVERITIES[level]},
    }


def _loss_rule(kind: str) -> dict[str, Any]:
    """Return the SARIF rule of a kind of loss in arithmetic."""
    means = f"A step of arithmetic whose elements {phrases.VERBS[kind]}"
    return {
        "id": f"loss/{kind}",
        "name": f"Loss{kind.capitalize()}",
        "shortDescription": {"text": means},
        "fullDescription": {"text": f"{means} in the audited run"},
        "help": {"text": "Compute the step in a dtype that holds its result, or in another order."},
        "defaultConfiguration": {"level": "warning"},
    }


class _Results:
    """Builder of SARIF results; a running number distinguishes otherwise equal fingerprints.

    Each result has a physical location, which code hosts ask for. That of a place without a line of
    source is the file that the graph was read from; a node of a model is its logical location.
    """

    def __init__(self, report: CastReport) -> None:
        self._report = report
        self._counts: Counter[str] = Counter()
        self._losses: dict[int, tuple[str, dict[str, Any]]] = {}
        self._causes: dict[int, str] = {}

    @cached_property
    def _file(self) -> str:
        """The file of places without one: of the graph, of its first line, or of its name."""
        places = (x.location for x in self._report.graph.symbols)
        files = (place.file for place in places if place.file and place.line)
        return self._report.graph.provenance.file or next(files, f"{self._report.graph.name}.gir")

    def of_unseen(self, part: Unseen) -> str:
        """Return the SARIF result, as JSON, of a part of the program that was not seen."""
        layer = printable(part.location.layer)
        return text(
            {
                "ruleId": _UNSEEN_RULE["id"],
                "ruleIndex": len(phrases.MEANINGS),
                "level": "warning" if part.hides or part.casts else "note",
                "message": {"text": _plain(f"not seen: {phrases.step_text(part)}")},
                "locations": [self._place(whole(part.location), layer)],
            }
        )

    def of(self, site: CastSite) -> str:
        """Return the SARIF result of a site, as JSON."""
        row = site.row
        if row.kind in phrases.VERBS:
            return self._of_loss(site)
        loss_text, head = self._losses.get(id(row.conversion)) or self._loss(row)
        fix, instead = printable(row.fix), replacement(row)
        sentences = [loss_text, *([f"write {fix}"] if fix else []), *phrases.measured(site)]
        result: dict[str, Any] = {
            **head,
            "locations": [self._location(row)],
            "message": {"text": _plain("; ".join(sentences))},
            "partialFingerprints": {"cast/v1": self._fingerprint(row, loss_text)},
        }
        if row.location.file and row.location.line > 0 and instead:
            result["fixes"] = [_fix(row, instead)]
        if site.times > 1:
            result["occurrenceCount"] = site.times
        related = [self._cause(row.cause)] if row.cause is not None else []
        uses = (rows[0] for rows in site.places[1:MAX_LOCATIONS])
        related += map(self._further_use, count(2), uses)
        if not related:
            return text(result)
        return f'{text(result)[:-1]}, "relatedLocations": [{", ".join(related)}]}}'

    def _cause(self, cause: CastRow) -> str:
        """Return the SARIF location, as JSON, of the cast that caused a result."""
        related_text = self._causes.get(cause.place)
        if related_text is None:
            note = f"it follows from {phrases.conversion(cause)} here"
            related_text = self._causes[cause.place] = self._related_location(1, cause, note)
        return related_text

    def _of_loss(self, site: CastSite) -> str:
        """Return the SARIF result of a step of arithmetic that lost values, as JSON."""
        row, kinds = site.row, list(phrases.VERBS)
        head = f"{phrases.conversion(row)} {phrases.why(row)}"
        sentences = [head, *phrases.measured(site), *([f"write {row.fix}"] if row.fix else [])]
        result: dict[str, Any] = {
            "ruleId": f"loss/{row.kind}",
            "ruleIndex": len(phrases.MEANINGS) + 1 + kinds.index(row.kind),
            "level": "warning" if site.share != 0 else "note",
            "locations": [self._location(row)],
            "message": {"text": _plain("; ".join(sentences))},
            "partialFingerprints": {"cast/v1": self._fingerprint(row, head)},
        }
        if site.times > 1:
            result["occurrenceCount"] = site.times
        return text(result)

    def _loss(self, row: CastRow) -> tuple[str, dict[str, Any]]:
        """Return the loss text and the SARIF fields that all results of a conversion share."""
        worst = phrases.level(row)
        loss_text = f"{phrases.conversion(row)} {phrases.why(row)}, {phrases.what(row)}: {row.loss}"
        head = {
            "ruleId": f"cast/{worst}",
            "ruleIndex": list(phrases.MEANINGS).index(worst),
            "level": SEVERITIES[worst] if row.kind in (*SILENT, "literal") else "note",
        }
        entry = self._losses[id(row.conversion)] = loss_text, head
        return entry

    def _fingerprint(self, row: CastRow, loss_text: str) -> str:
        """Return a fingerprint that is stable while lines move.

        It hashes file, layer, expression, loss text and the running number of equal results.
        """
        expression = row.expression
        brief = expression.brief if expression else ""
        identity = "\0".join((row.location.file, row.layer, brief, loss_text))
        self._counts[identity] += 1
        key = f"{identity}\0{self._counts[identity]}"
        return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:32]

    def _further_use(self, number: int, row: CastRow) -> str:
        """Return the SARIF location, as JSON, of a further use of a result's casts."""
        return self._related_location(number, row, f"{phrases.what(row)} uses it here")

    def _related_location(self, number: int, row: CastRow, note: str) -> str:
        return text({"id": number, **self._location(row), "message": {"text": note}})

    def _location(self, row: CastRow) -> dict[str, Any]:
        layer = printable(row.layer) or printable(row.symbol.graph.name)
        return self._place(region(row), layer)

    def _place(self, place: SourceRegion, layer: str) -> dict[str, Any]:
        has_line = bool(place.file) and place.line > 0
        name = layer if has_line or not place.file else printable(place.file)
        file, lines = (place.file, _of(place)) if has_line else (self._file, {"startLine": 1})
        return {
            "logicalLocations": [{"fullyQualifiedName": name or "graph"}],
            "physicalLocation": {"artifactLocation": _artifact(file), "region": lines},
        }


def _fix(row: CastRow, replacement: str) -> dict[str, Any]:
    place = whole(row.location)
    change = {"deletedRegion": _of(place), "insertedContent": {"text": replacement}}
    return {
        "description": {"text": _plain(f"Write {printable(row.fix)}")},
        "artifactChanges": [{"artifactLocation": _artifact(place.file), "replacements": [change]}],
    }


def _plain(message: str) -> str:
    """Escape a message so that SARIF viewers do not read brackets as links."""
    return message.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _of(place: SourceRegion) -> dict[str, int]:
    region = {"startLine": place.line}
    if place.is_known:
        ends = {"endLine": place.end_line, "endColumn": max(place.end_column, 1)}
        return {**region, "startColumn": max(place.column, 1), **ends}
    return region


@lru_cache(maxsize=1024)
def _artifact(file: str) -> dict[str, str]:
    path = Path(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {
        "uri": quote(file.replace(os.sep, "/"), errors="replace"),
        "uriBaseId": "%SRCROOT%",
    }
