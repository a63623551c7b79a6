"""Baselines: the dtypes of results and the casts of a test run as a file, and what changed since.

A baseline has the functions by name and their calls by signature. Lines are in it as text, so that
edits elsewhere change nothing. A run is compared by the calls that both have: new tests, functions
and dtypes are no changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from graphir import DType, GraphError
from graphir.runtime.testing.ledger import CallRecord, CastFact, Ledger
from graphir.text.atomic_files import replace_file

VERSION = 1
"""The version of the format: see baseline.schema.json."""


@dataclass
class Finding:
    """A line with a wider dtype or a new loss, why, and the tests that reach it."""

    file: str
    line: int
    text: str
    reasons: dict[str, None] = field(default_factory=dict[str, None])
    tests: dict[str, None] = field(default_factory=dict[str, None])


def baseline_json(ledger: Ledger, package: str) -> str:
    """Return the baseline of a ledger as JSON text, sorted."""
    functions: dict[str, Any] = {}
    for (name, arguments), call in ledger.calls.items():
        if call.recordings and (call.results or _stored_casts(call.casts)):
            calls = functions.setdefault(name, {"calls": {}})["calls"]
            calls[arguments] = {
                "results": {path: sorted(dtypes) for path, dtypes in call.results.items()},
                "tests": sorted(call.recorded_in),
                "casts": [_cast_json(x) for x in sorted(_stored_casts(call.casts))],
            }
    document = {"version": VERSION, "package": package, "functions": functions}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _stored_casts(casts: Iterable[CastFact]) -> list[CastFact]:
    """Return the casts that a baseline has: silent ones that lose or widen."""
    return [x for x in casts if x.is_silent and (x.loss or _widens(x))]


def _cast_json(cast: CastFact) -> dict[str, str]:
    facts = {"line": cast.text, "op": cast.op, "from": cast.source, "to": cast.target}
    return {**facts, "kind": cast.kind, "loss": cast.loss}


def write_baseline(path: Path, ledger: Ledger, package: str) -> None:
    """Write the baseline of a ledger to a file."""
    replace_file(str(path), baseline_json(ledger, package).encode())


def read_baseline(path: Path) -> dict[str, Any]:
    """Return the functions of a baseline file; GraphError for a file that is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version, functions = document["version"], document["functions"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GraphError(
            f"{path} is no baseline of casts", got=str(error), fix="write it again: --casts-update"
        ) from None
    if version != VERSION:
        raise GraphError(
            f"{path} is a baseline of version {version}, not {VERSION}",
            fix="write it again: --casts-update",
        )
    return functions


def findings(before: Mapping[str, Any], ledger: Ledger) -> list[Finding]:
    """Return the lines by which the calls of a baseline have wider results or new losses now."""
    at_lines: dict[tuple[str, int], Finding] = {}
    for (name, arguments), call in ledger.calls.items():
        former = before.get(name, {}).get("calls", {}).get(arguments)
        if former is None or not call.recordings:
            continue
        changes = [*_new_casts(former["casts"], call), *_new_results(former["results"], call)]
        for file, line, text, reason in changes:
            finding = at_lines.setdefault((file, line), Finding(file, line, text))
            finding.reasons[reason] = None
            finding.tests.update(dict.fromkeys(call.tests))
    return sorted(at_lines.values(), key=lambda x: (x.file, x.line))


class _Change(NamedTuple):
    """A cast or a result that differs from the baseline, at a line."""

    file: str
    line: int
    text: str
    reason: str


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
            yield _Change(x.file, x.line, x.text, cast_reason(x))


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
                yield _Change(*origins[0], reason)
            else:
                text = f"def {call.function.rpartition(':')[2].rpartition('.')[2]}"
                yield _Change(call.file, call.line, text, reason)


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
