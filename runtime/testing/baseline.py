"""Baselines: the dtypes of results and the casts of a test run as a file, and what changed since.

A baseline has the functions by name and their calls by signature. Lines are in it as text, so that
edits elsewhere change nothing. A run is compared by the calls that both have: new tests, functions
and dtypes are no changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from graphir.display import count_text, printable
from graphir.public import DType, GraphError
from graphir.runtime.testing.ledger import BLANK, CallRecord, CastFact, Ledger
from graphir.source_text import source_line
from graphir.text.atomic_files import replace_file

VERSION = 1
"""The version of the format: see baseline.schema.json."""


@dataclass
class Finding:
    """A line that widened a dtype or added a loss, why, and the tests that reach it."""

    file: str
    line: int
    text: str
    reasons: dict[str, None] = field(default_factory=dict[str, None])
    tests: dict[str, None] = field(default_factory=dict[str, None])
    edited: bool = False
    """Whether the line is new in its function."""
    is_result: bool = False
    """Whether the reason is the dtype of a result."""


def baseline_json(ledger: Ledger, former: Mapping[str, Any]) -> str:
    """Return the baseline of a ledger as JSON text, sorted.

    `former` is a document of the same package, whose other calls stay.
    """
    functions: dict[str, Any] = {**former.get("functions", {})}
    for (name, arguments), call in ledger.calls.items():
        if call.recordings and (call.results or not call.tests or _stored_casts(call.casts)):
            entry = functions.setdefault(name, {"lines": _lines(ledger, name), "calls": {}})
            entry["calls"][arguments] = {
                "results": {path: sorted(dtypes) for path, dtypes in call.results.items()},
                "tests": sorted(call.recorded_in),
                "casts": [_cast_json(x) for x in sorted(_stored_casts(call.casts))],
            }
    document = {"version": VERSION, "package": former["package"], "functions": functions}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _lines(ledger: Ledger, name: str) -> str:
    digests = ledger.sources.get(name, "").split()
    return " ".join(dict.fromkeys(x for x in digests if x != BLANK))


def _stored_casts(casts: Iterable[CastFact]) -> list[CastFact]:
    """Return the casts that a baseline has: silent ones that lose or widen.

    Those that a comment in the source accepts are left out.
    """
    return [x for x in casts if x.is_silent and not x.is_accepted and (x.loss or _widens(x))]


def _cast_json(cast: CastFact) -> dict[str, str]:
    facts = {"line": cast.text, "op": cast.op, "from": cast.source, "to": cast.target}
    return {**facts, "kind": cast.kind, "loss": cast.loss}


def write_baseline(path: Path, ledger: Ledger, former: Mapping[str, Any]) -> None:
    """Write the baseline of a ledger to a file (see baseline_json)."""
    replace_file(str(path), baseline_json(ledger, former).encode())


def read_baseline(path: Path) -> dict[str, Any]:
    """Return the document of a baseline file; GraphError for a file that is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version, _, _ = document["version"], document["functions"], document["package"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GraphError(f"{path} is no baseline of casts", got=str(error), fix=_AGAIN) from None
    if version != VERSION:
        raise GraphError(
            f"{path} is a baseline of version {version}, not {VERSION}",
            fix=_AGAIN,
        )
    return document


_AGAIN = "remove it: the next run writes it again"


def changed_lines(path: Path, ledger: Ledger) -> list[str] | None:
    """Return the lines about what changed since a baseline in the one call of a ledger.

    None if the baseline had not this call, and has it now. Raises GraphError for a file that is no
    baseline.
    """
    former: Mapping[str, Any] = {"package": "", "functions": {}}
    former = read_baseline(path) if path.exists() else former
    ((name, arguments),) = ledger.calls
    if arguments not in former["functions"].get(name, {}).get("calls", {}):
        write_baseline(path, ledger, former)
        return None
    changes = findings(former["functions"], ledger, Path())
    return finding_lines(changes, str(path)) if changes else []


def findings(before: Mapping[str, Any], ledger: Ledger, root: Path) -> list[Finding]:
    """Return the lines by which the calls of a baseline have wider results or new losses now.

    If the function of such a line has lines that it did not have before, the nearest of these is
    the line: `root` is the folder of its file. What other functions then compute in other dtypes,
    in the same tests, are consequences.
    """
    at_lines: dict[tuple[str, int], Finding] = {}
    consequences: list[Finding] = []
    for (name, arguments), call in ledger.calls.items():
        former = before.get(name, {}).get("calls", {}).get(arguments)
        if former is None or not call.recordings:
            continue
        changes = [*_new_casts(former["casts"], call), *_new_results(former["results"], call)]
        for change in changes:
            finding = _finding(change, before, ledger, root)
            finding.tests.update(dict.fromkeys(call.tests))
            if finding.edited:
                _add(at_lines, finding)
            else:
                consequences.append(finding)
    edits = list(at_lines.values())
    for each in consequences:
        causes = [x for x in edits if x.tests.keys() & each.tests.keys()]
        for cause in causes:
            cause.reasons.update(dict.fromkeys(_at(each, reason) for reason in each.reasons))
        if not causes:
            _add(at_lines, each)
    return sorted(at_lines.values(), key=lambda x: (x.file, x.line))


def finding_lines(findings: Sequence[Finding], file: str) -> list[str]:
    """Return the lines about changes since a baseline."""
    if not findings:
        return [f"no dtype is wider and no loss is new since {file}"]
    lines = [f"{count_text(len(findings), 'line')} changed dtypes since {file}:"]
    for each in findings:
        lines.append(f"{printable(each.file)}:{each.line}: {printable(each.text)}")
        reasons = [printable(x, 300) for x in each.reasons]
        lines += [f"    {x}" for x in reasons[:4]]
        if len(reasons) > 4:
            lines.append(f"    and {count_text(len(reasons) - 4, 'more change')}")
        lines += [f"    in {tests_text(tuple(each.tests))}"] if each.tests else []
    return lines


_MOST_TESTS = 2


def tests_text(tests: Sequence[str]) -> str:
    """Return the first tests by name, and the number of the others."""
    names = [printable(x) for x in tests[:_MOST_TESTS]]
    others = len(tests) - len(names)
    return ", ".join(names) + (f" and {count_text(others, 'other')}" if others else "")


def _add(at_lines: dict[tuple[str, int], Finding], finding: Finding) -> None:
    own = at_lines.setdefault((finding.file, finding.line), finding)
    own.reasons.update(finding.reasons)
    own.tests.update(finding.tests)


def _at(finding: Finding, reason: str) -> str:
    return reason if finding.is_result else f"line {finding.line} {reason}"


class _Change(NamedTuple):
    """A cast or a result that differs from the baseline, at a line of a function."""

    function: str
    file: str
    line: int
    text: str
    reason: str
    is_result: bool = False


def _finding(change: _Change, before: Mapping[str, Any], ledger: Ledger, root: Path) -> Finding:
    """Return the finding of a change: at the nearest line that is new in the function, if any."""
    function, file, line, text, reason, is_result = change
    new = _new_lines(function, before, ledger)
    if not new:
        return Finding(file, line, text, {reason: None}, is_result=is_result)
    near = max((x for x in new if x <= line), default=min(new))
    if near != line and not is_result:
        reason = f"line {line} {reason}"
    text = source_line(str(root / file), near).strip()
    return Finding(file, near, text, {reason: None}, edited=True, is_result=is_result)


def _new_lines(function: str, before: Mapping[str, Any], ledger: Ledger) -> list[int]:
    """Return the lines that a function of the baseline did not have before."""
    function = function.partition(".<")[0]
    digests, former = ledger.sources.get(function), before.get(function)
    line = next((x.line for x in ledger.calls.values() if x.function == function and x.line), 0)
    if digests is None or former is None or not line:
        return []
    lines_before = set(former["lines"].split())
    pairs = enumerate(digests.split(), line)
    return [number for number, digest in pairs if digest != BLANK and digest not in lines_before]


def _new_casts(former: list[dict[str, str]], call: CallRecord) -> Iterator[_Change]:
    """Yield the casts from one dtype to another on more lines of a function than before."""
    lines_before: dict[tuple[str, str], set[str]] = {}
    for each in former:
        lines_before.setdefault((each["from"], each["to"]), set()).add(each["line"])
    now: dict[tuple[str, str], dict[str, CastFact]] = {}
    for cast in _stored_casts(call.casts):
        now.setdefault((cast.source, cast.target), {}).setdefault(cast.text, cast)
    for dtypes, casts in now.items():
        dtypes_before = lines_before.get(dtypes, set())
        if len(casts) <= len(dtypes_before):
            continue
        new = [x for text, x in casts.items() if text not in dtypes_before] or list(casts.values())
        for x in new:
            yield _Change(x.function, x.file, x.line, x.text, cast_reason(x))


def cast_reason(cast: CastFact) -> str:
    """Return what is new about a cast, and the code to type instead."""
    loss = f", which {cast.loss}" if cast.loss else ""
    return f"casts {cast.source} to {cast.target} ({cast.operand} of {cast.op}){loss}"


def _new_results(former: Mapping[str, list[str]], call: CallRecord) -> Iterator[_Change]:
    for path, dtypes in call.results.items():
        dtypes_before = former.get(path, [])
        for dtype, origins in dtypes.items():
            if (
                not dtypes_before
                or dtype in dtypes_before
                or not any(_worse(x, dtype) for x in dtypes_before)
            ):
                continue
            before_text = " or ".join(dtypes_before)
            what = "returns" if path == "result" else f"makes {path}"
            reason = f"{call.function}({call.arguments}) {what} {dtype}, was {before_text}"
            if origins:
                yield _Change(*origins[0], reason, True)
            else:
                text = f"def {call.function.rpartition(':')[2].rpartition('.')[2]}"
                yield _Change(call.function, call.file, call.line, text, reason, True)


def _worse(before: str, after: str) -> bool:
    """Whether a result of another dtype widens, narrows, or became a NumPy scalar."""
    is_scalar = after.startswith("np.")
    old, new = before.removeprefix("np."), after.removeprefix("np.")
    if old in _PYTHON or new in _PYTHON:
        return old in _PYTHON and is_scalar
    return old != new


_PYTHON = ("int", "float", "complex")


def _widens(cast: CastFact) -> bool:
    """Whether a cast makes more bits of the same family, or complex numbers of floats."""
    source, target = DType(cast.source), DType(cast.target)
    if source.weak or target.weak:
        return False
    if source.family == target.family:
        return target.bits > source.bits
    return source.is_float and target.is_complex
