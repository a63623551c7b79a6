"""The findings of cast reports as linters print them: SARIF 2.1.0, a line each, GitHub's commands.

Code hosts annotate the lines of a change from SARIF, and GitHub from commands in the log of a job.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from graphir.decorators import uncollected
from graphir.display import printable
from graphir.drawing.loss_levels import Level
from graphir.passes.analysis.casts.conversion import SILENT
from graphir.passes.analysis.explanations.edits import Edit
from graphir.passes.analysis.policies.patterns import forbidden_rows
from graphir.passes.reports import phrases
from graphir.passes.reports.json_ import VERSION, text
from graphir.passes.reports.phrases import SourceRegion, region, whole
from graphir.passes.reports.sentences import Sentence, answers_of_rows

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow, Unseen
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.policies.ignores import UnusedIgnore

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

PAGE = "graphir:docs/codes.md"
"""The page with an anchor for each rule, as the absolute URI that SARIF asks for."""

MAX_RESULTS = 25_000
"""The most results of a run that GitHub accepts; the worst results come first.

See "SARIF results exceed limits" in its documentation.
"""


@uncollected
def report_sarif(report: CastReport) -> str:
    """Return the report as a SARIF log of one run: a rule for each level of loss, a result a site.

    The first results are the causes (the rules cause/dtype and cause/value) with their fixes, then
    come the parts that were not seen (audit/unseen). The errors of outputs are properties of the
    run. Columns count characters. File paths are relative to the
    working directory, as %SRCROOT%.
    """
    findings, count = _findings(report)
    run: dict[str, Any] = {
        "tool": {"driver": _DRIVER},
        "columnKind": "unicodeCodePoints",
        "results": [*map(_escaped, islice(findings, MAX_RESULTS))],
        "properties": {
            "sentences": report.sentences,
            "acceptedLines": len({place[:2] for place in report.accepted}),
            "outputs": [error.to_json() for error in report.outputs],
        },
    }
    if (omitted := count - MAX_RESULTS) > 0:
        what = {"text": f"{omitted} further results are left out: JSON has all"}
        notes = [{"level": "warning", "message": what}]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def report_concise(report: CastReport) -> str:
    """Return a line for each finding, as linters print them: `file:line:column: rule message`."""
    return "\n".join(
        f"{file}:{line}:{column}: {x['ruleId']} {x['message']['text']}"
        for x in _findings(report)[0]
        for file, line, column in [_start(x)]
    )


def report_github(report: CastReport) -> str:
    """Return a command of GitHub's workflows for each finding: `::warning file=a.py,line=3::text`.

    See "Workflow commands for GitHub Actions" in its documentation.
    """
    return "\n".join(
        f"::{_COMMANDS[x['level']]} file={_property(file)},line={line},col={column},"
        f"title={_property(x['ruleId'])}::{_data(x['message']['text'])}"
        for x in _findings(report)[0]
        for file, line, column in [_start(x)]
    )


_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
"""GitHub's commands by the level of SARIF."""


def _data(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def _start(result: dict[str, Any]) -> tuple[str, int, int]:
    """Return the file, the line and the column at which a result stands."""
    place = result["locations"][0]["physicalLocation"]
    file, lines = unquote(place["artifactLocation"]["uri"]), place["region"]
    file = printable(file.removeprefix("file://"), None)
    return file, lines["startLine"], lines.get("startColumn", 1)


def _findings(report: CastReport) -> tuple[Iterator[dict[str, Any]], int]:
    """Return the results of a report, and their number.

    Casts that lose nothing are no results, unless the report's gate forbids them.
    """
    results, causes = _Results(report), answers_of_rows(report)
    sites = [x for x in report.sites if not x.row.exact or results.is_forbidden(x)]
    every = chain(
        map(results.of_cause, causes),
        map(results.of_unseen, report.unseen),
        map(results.of, sites),
        map(results.of_unused, report.unused),
    )
    count = len(causes) + len(report.unseen) + len(sites) + len(report.unused)
    return every, count


def _rule(name: str, brief: str, full: str, advice: str, level: str = "warning") -> dict[str, Any]:
    return {
        "id": name,
        "name": name.title().replace("/", ""),
        "shortDescription": {"text": brief},
        "fullDescription": {"text": full},
        "help": {"text": advice},
        "helpUri": f"{PAGE}#{name.replace('/', '')}",
        "defaultConfiguration": {"level": level},
    }


def _cast_rule(level: Level) -> dict[str, Any]:
    means = phrases.MEANINGS[level]
    full = f"A conversion between dtypes in which {means}."
    advice = (
        "Nothing is lost; the cast costs memory and time."
        if level == "exact"
        else "Cast the operands to a dtype that holds the values of both, or write the cast down "
        "where the loss is meant."
    )
    brief = f"An implicit cast: {means}"
    return _rule(f"cast/{level}", brief, full, f"{full} {advice}", SEVERITIES[level])


def _loss_rule(kind: str) -> dict[str, Any]:
    """Return the SARIF rule of a kind of loss in arithmetic."""
    means = f"A step of arithmetic whose elements {phrases.VERBS[kind]}"
    advice = "Compute the step in a dtype that holds its result, or in another order."
    return _rule(f"loss/{kind}", means, f"{means} in the audited run", advice)


_RULES = [
    *map(_cast_rule, phrases.MEANINGS),
    _rule(
        "audit/unseen",
        "A part of the program that the report did not see",
        "A part of the program that may hide casts, or an error",
        "No result has the casts inside; the message says if an error is unknown",
    ),
    *map(_loss_rule, phrases.VERBS),
    _rule(
        "ignore/unused",
        "A comment that accepts no finding",
        "A comment `# graphir: ignore` that accepts no finding of its codes in its line",
        "Remove the comment, or the code in it.",
    ),
    _rule(
        "cause/dtype",
        "A line by which a result has a wider dtype than the data",
        "The line at which a wider dtype enters the data of a result",
        "The message says what to write instead; a fix says what it was tried with.",
    ),
    _rule(
        "cause/value",
        "A line that lost the values of a result",
        "A line that, made exact, removes the error of a result in the audited run",
        "The message says what to write instead; a fix says what it was tried with.",
        "error",
    ),
]
_INDICES = {rule["id"]: index for index, rule in enumerate(_RULES)}
_DRIVER = {"name": "graphir", "rules": _RULES, "properties": {"reportVersion": VERSION}}


class _Results:
    """Builder of SARIF results; a running number distinguishes otherwise equal fingerprints.

    Each result has a physical location, which code hosts ask for. That of a place without a line of
    source is the file that the graph was read from; a node of a model is its logical location.
    """

    def __init__(self, report: CastReport) -> None:
        self._report = report
        self._counts: Counter[str] = Counter()
        self._forbidden = {row.place for row in forbidden_rows(report, report.gate)}

    def is_forbidden(self, site: CastSite) -> bool:
        """Whether the gate of the report forbids a row of a site."""
        return any(row.place in self._forbidden for row in site.rows)

    @cached_property
    def _file(self) -> str:
        """The file of places without one: of the graph, of its first line, or of its name."""
        places = (x.location for x in self._report.graph.symbols)
        files = (place.file for place in places if place.file and place.line)
        return self._report.graph.provenance.file or next(files, f"{self._report.graph.name}.gir")

    def of_cause(self, sentence: Sentence) -> dict[str, Any]:
        """Return the SARIF result of a cause, with its fix."""
        cause = sentence.cause
        assert cause is not None
        place = self._place(whole(cause.place), printable(cause.place.layer))
        level = "warning" if cause.question == "dtype" else "error"
        result = _result(cause.code, level, printable(str(sentence), 2000), place)
        edits = [] if cause.fix is None else [x for x in cause.fix.edits if x.is_code]
        if edits:
            what = {"text": sentence.advice}
            result["fixes"] = [{"description": what, "artifactChanges": _changes(edits)}]
        return result

    def of_unseen(self, part: Unseen) -> dict[str, Any]:
        """Return the SARIF result of a part of the program that was not seen."""
        place = self._place(whole(part.location), printable(part.location.layer))
        level = "warning" if part.hides or part.casts else "note"
        return _result("audit/unseen", level, f"not seen: {phrases.step_text(part)}", place)

    def of_unused(self, comment: UnusedIgnore) -> dict[str, Any]:
        """Return the SARIF result of a comment that accepts nothing."""
        place = SourceRegion(comment.file, comment.line, 1, comment.line, 1)
        return _result("ignore/unused", "warning", comment.text, self._place(place, ""))

    def of(self, site: CastSite) -> dict[str, Any]:
        """Return the SARIF result of a site."""
        row = site.row
        head = f"{phrases.conversion(row)} {phrases.why(row)}"
        if row.kind in phrases.VERBS:
            level = "warning" if site.share != 0 else "note"
        else:
            head += f", {phrases.what(row)}: {row.loss}"
            is_silent = row.kind in (*SILENT, "literal")
            level = SEVERITIES[phrases.level(row)] if is_silent else "note"
        level = "error" if self.is_forbidden(site) else level
        sentences = [head, *([f"write {printable(row.fix)}"] if row.fix else [])]
        sentences += phrases.measured(site)
        if site.times > 1:
            sentences.append(f"uses: {phrases.uses(site)}")
        if row.cause is not None:
            sentences.append(f"it follows from {phrases.conversion_at(row.cause)}")
        layer = printable(row.layer) or printable(row.symbol.graph.name)
        result = _result(row.code, level, "; ".join(sentences), self._place(region(row), layer))
        result["partialFingerprints"] = {"cast/v1": self._fingerprint(row, head)}
        result["occurrenceCount"] = site.times
        return result

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

    def _place(self, place: SourceRegion, layer: str) -> dict[str, Any]:
        has_line = bool(place.file) and place.line > 0
        name = layer if has_line or not place.file else printable(place.file)
        file, lines = (place.file, _lines(place)) if has_line else (self._file, {"startLine": 1})
        return {
            "logicalLocations": [{"fullyQualifiedName": name or "graph"}],
            "physicalLocation": {"artifactLocation": _artifact(file), "region": lines},
        }


def _result(rule: str, level: str, message: str, place: dict[str, Any]) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "ruleIndex": _INDICES[rule],
        "level": level,
        "message": {"text": message},
        "locations": [place],
    }


def _escaped(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result for SARIF, whose viewers read unescaped brackets in a message as links."""
    plain = result["message"]["text"].replace("\\", "\\\\")
    plain = plain.replace("[", "\\[").replace("]", "\\]")
    return result | {"message": {"text": plain}}


def _lines(place: SourceRegion) -> dict[str, int]:
    region = {"startLine": place.line}
    if place.is_known:
        ends = {"endLine": place.end_line, "endColumn": max(place.end_column, 1)}
        return {**region, "startColumn": max(place.column, 1), **ends}
    return region


def _changes(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Return the changes of files, each with its replacements."""
    files: dict[str, list[dict[str, Any]]] = {}
    for edit in edits:
        replaced = {"text": edit.text}
        lines = _lines(whole(edit.place))
        replacement = {"deletedRegion": lines, "insertedContent": replaced}
        files.setdefault(edit.place.file, []).append(replacement)
    return [{"artifactLocation": _artifact(x), "replacements": files[x]} for x in files]


def _artifact(file: str) -> dict[str, str]:
    path = Path(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {
        "uri": quote(file.replace(os.sep, "/"), errors="replace"),
        "uriBaseId": "%SRCROOT%",
    }
