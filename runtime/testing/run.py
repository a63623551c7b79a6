"""One test run with casts: the package under test, its ledger, its judgement and its report."""

from __future__ import annotations

import pickle
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from graphir.display import count_text, printable
from graphir.passes import Policy, cast_kind
from graphir.public import GraphError, rules
from graphir.rule_reports.terminal import fitted
from graphir.runtime.testing import baseline
from graphir.runtime.testing.baseline import finding_lines, tests_text
from graphir.runtime.testing.ledger import CastFact, Difference, Ledger
from graphir.runtime.testing.shadow import why_no_shadows
from graphir.runtime.testing.watch import FunctionWatch


class CastsRun:
    """A test run that records the functions of a package.

    `forbid` are kinds of casts, in the words of policies, and `against` names of rule sets.
    `file` is that of the baseline, which the run writes if it does not exist, or with `update`.
    A run with kinds that it forbids, or with a baseline to compare with, fails if a function that
    tests call was not seen, unless `passes_unseen`. Raises GraphError for unknown words, where no
    package is under test, and where no process can have shadows.
    """

    def __init__(
        self,
        package: str,
        root: Path,
        forbid: Sequence[str],
        against: Sequence[str],
        file: Path | None,
        update: bool,
        passes_unseen: bool = False,
    ) -> None:
        if problem := why_no_shadows():
            raise GraphError(f"--casts records in forked processes: {problem}")
        self.package = package or package_under_test(root)
        forbid, self.against = _words(forbid), _words(against)
        policy = Policy(forbid=map(cast_kind, forbid)) if forbid else None
        for name in self.against:
            rules(cast("Any", name))
        self._file, self._root = file, root
        self._former = None
        if file is not None and file.exists() and not update:
            self._former = baseline.read_baseline(file)["functions"]
        self._is_gate = bool(forbid or self._former is not None)
        self._passes_unseen = passes_unseen
        self.watch = FunctionWatch(self.package, str(root), policy, self.against)
        self._ledger = Ledger()
        self._findings: list[baseline.Finding] = []
        self.finished = False

    def start(self, hides_dtypes: bool, tests: Sequence[str]) -> None:
        """Watch the package's functions."""
        self.watch.recorders = _recorders(self._former or {}, set(tests))
        self.watch.start(hides_dtypes)

    def finish_worker(self) -> bytes:
        """End the run in a worker; return its ledger, pickled for the controller."""
        return pickle.dumps(self.watch.stop())

    def add(self, ledger: bytes) -> None:
        """Add the ledger of a worker."""
        self._ledger.add(pickle.loads(ledger))

    def finish(self) -> bool:
        """End the run, write or compare the baseline; return whether the run fails.

        Raises GraphError if no test has imported the package.
        """
        self._ledger.add(self.watch.stop())
        if not self._ledger.modules:
            raise GraphError(
                f"--casts={self.package}: no test imports this package",
                fix="name the package that the tests import: --casts=PACKAGE",
            )
        self.finished = True
        if self._former is not None:
            self._findings = baseline.findings(self._former, self._ledger, self._root)
        elif self._file is not None:
            baseline.write_baseline(self._file, self._ledger, {"package": self.package})
        return bool(self._findings or forbidden_lines(self._ledger) or self._unseen_lines())

    def _unseen_lines(self) -> list[str]:
        is_judged = self._is_gate and not self._passes_unseen
        return unseen_gate_lines(self._ledger) if is_judged else []

    def report(self, width: int | None, verbose: bool) -> Iterator[tuple[str, dict[str, bool]]]:
        """Yield the lines of the report, each with its markup."""
        ledger = self._ledger
        for line in (*forbidden_lines(ledger), *self._unseen_lines()):
            yield line, {"red": True}
        if self._former is not None:
            for line in finding_lines(self._findings, self._display_path(self._file)):
                yield line, {"red": True} if self._findings else {"green": True}
        for line in report_lines(ledger, self.package, width, verbose):
            yield line, {}
        for line in difference_lines(ledger.differences, self.against, width, verbose):
            yield line, {}
        if self._former is None and self._file is not None:
            yield f"wrote the baseline {self._display_path(self._file)}", {}

    def _display_path(self, file: Path | None) -> str:
        return str(file).removeprefix(f"{self._root}/")


def _recorders(before: Mapping[str, Any], tests: set[str]) -> dict[tuple[str, str], set[str]]:
    """Return, by function and signature, those of `tests` in which a baseline recorded it."""
    pairs = (
        ((name, arguments), tests.intersection(call["tests"]))
        for name, function in before.items()
        for arguments, call in function["calls"].items()
    )
    return {key: names for key, names in pairs if names}


def _words(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the words of texts that separate them by commas."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


def package_under_test(root: Path) -> str:
    """Return the name of the package under test of a project in a folder.

    It is the package that has the name of the project in pyproject.toml, else the only package of
    the folder, or of its `src`. Raises GraphError without one.
    """
    packages = [
        path.parent.name
        for folder in (root / "src", root)
        for path in sorted(folder.glob("*/__init__.py"))
        if path.parent.name not in _OTHERS
    ]
    name = _project_name(root).replace("-", "_").replace(".", "_")
    for package in packages:
        if package.lower() == name.lower():
            return package
    if len(packages) == 1:
        return packages[0]
    if name and not packages:
        return name
    raise GraphError(
        f"--casts found no package under test in {root}",
        got=", ".join(packages) or "no packages",
        fix="name it: --casts=PACKAGE, or `casts = PACKAGE` in the settings",
    )


_OTHERS = {"tests", "test", "testing", "docs", "doc", "examples", "benchmarks", "tools", "scripts"}


def _project_name(root: Path) -> str:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        return project["project"]["name"]
    except (OSError, ValueError, KeyError):
        return ""


# -- the report of a ledger, as lines of text

SHORT = 10
"""The rows of each table without -v."""


class CastLine(NamedTuple):
    """A cast of the program with the tests that reach it; `times` casts if they are alike."""

    cast: CastFact
    tests: tuple[str, ...]
    times: int = 1

    @property
    def operand(self) -> str:
        """The operand of the cast, and the number of the casts."""
        more = f" ({self.times} casts)" if self.times > 1 else ""
        return f"{self.cast.operand} of {self.cast.op}{more}"


def folded(lines: Iterable[CastLine]) -> list[CastLine]:
    """Return the casts with one for those that are alike at a line of the program."""
    first: dict[tuple[object, ...], CastLine] = {}
    for each in lines:
        x = each.cast
        key = x.file, x.line, x.kind, x.source, x.target, x.loss, x.forbidden and x.fix
        old = first.setdefault(key, CastLine(x, (), 0))
        tests = tuple(dict.fromkeys((*old.tests, *each.tests)))
        first[key] = CastLine(old.cast, tests, old.times + 1)
    return list(first.values())


def cast_lines(ledger: Ledger) -> list[CastLine]:
    """Return each cast once, the worst first, those that NumPy's own functions make last."""
    tests: dict[tuple[str, ...], dict[str, None]] = {}
    casts: dict[tuple[str, ...], CastFact] = {}
    for call in ledger.calls.values():
        for fact in call.casts:
            key = fact.place, fact.op, fact.operand, fact.source, fact.target
            casts.setdefault(key, fact)
            tests.setdefault(key, {}).update(dict.fromkeys(call.tests))
    lines = [CastLine(cast, tuple(tests[key])) for key, cast in casts.items()]
    return sorted(lines, key=lambda x: _rank(x.cast))


def _rank(cast: CastFact) -> tuple[bool, float, bool, str, int, int]:
    return cast.in_library, -cast.damage, not cast.widens, cast.file, cast.line, cast.column


def report_lines(ledger: Ledger, package: str, width: int | None, verbose: bool) -> list[str]:
    """Return the lines about what the run did not see, then a table of its casts."""
    return [*unseen_lines(ledger, verbose), *_casts(ledger, package, width, verbose)]


def unseen_lines(ledger: Ledger, verbose: bool) -> list[str]:
    """Return the lines about functions that recordings could not follow."""
    hidden, parts = ledger.unseen_functions, list[str]()
    partial: dict[str, str] = {}
    for call in ledger.calls.values():
        for note in call.unseen:
            if call.function not in hidden:
                partial.setdefault(call.function, note)
    if hidden:
        parts.append(
            f"{len(hidden)} of {count_text(len(ledger.called_functions), 'function')} called"
        )
    if partial:
        parts.append(f"steps in {count_text(len(partial), 'function')}")
    if not parts:
        return []
    more = "" if verbose else " (-v: which, and why)"
    lines = [f"not seen: {', '.join(parts)}{more}"]
    return [*lines, *_reason_lines({**hidden, **partial})] if verbose else lines


def _reason_lines(reasons: Mapping[str, str]) -> list[str]:
    return [f"  {name}: {printable(why, 200)}" for name, why in reasons.items()]


def unseen_gate_lines(ledger: Ledger) -> list[str]:
    """Return the lines about the functions for whose sake a gate fails: nothing recorded them."""
    if not ledger.unseen_functions:
        return []
    count = count_text(len(ledger.unseen_functions), "function")
    head = f"{count} called but not seen, which fails the run (--casts-unseen=pass: it passes):"
    return [head, *_reason_lines(ledger.unseen_functions)]


def _casts(ledger: Ledger, package: str, width: int | None, verbose: bool) -> list[str]:
    every = cast_lines(ledger)
    lines = [x for x in every if not x.cast.is_accepted]
    accepted = {(x.cast.file, x.cast.line) for x in every if x.cast.is_accepted}
    lossy = sum(bool(x.cast.loss) for x in lines)
    uses = count_text(len(lines), "cast")
    functions = count_text(len(ledger.recorded_functions), "function")
    head = f"{package}: {uses}, {lossy} can lose something; {functions} recorded"
    head += f"; {count_text(len(accepted), 'line')} accepted" if accepted else ""
    visible = folded(lines)
    notable = (x for x in visible if x.cast.loss or (x.cast.widens and not x.cast.in_library))
    visible = visible if verbose else [*notable][:SHORT]
    rows = [
        (
            printable(x.cast.place),
            x.operand,
            x.cast.source,
            x.cast.target,
            x.cast.loss or "exact",
            tests_text(x.tests) if verbose else str(len(x.tests)),
        )
        for x in visible
    ]
    table = (
        fitted([("where", "operand", "from", "to", "loss", "tests"), *rows], width) if rows else []
    )
    more = len(lines) - sum(x.times for x in visible)
    rest = [f"... and {count_text(more, 'cast')} more (-v)"] if more else []
    return [head, *table, *rest]


def forbidden_lines(ledger: Ledger) -> list[str]:
    """Return the lines about the casts that the policy forbids."""
    lines = [x for x in cast_lines(ledger) if x.cast.forbidden]
    if not lines:
        return []
    head = f"{count_text(len(lines), 'cast')} forbidden by --casts-fail:"
    texts: list[str] = []
    for line in folded(lines):
        fact = line.cast
        loss = f" ({fact.loss})" if fact.loss else ""
        what = f"{line.operand} {fact.source} -> {fact.target}{loss}"
        texts.append(f"{printable(fact.place)}: {what}, forbidden by {fact.forbidden}")
        texts += [f"    write: {printable(fact.fix)}"] if fact.fix else []
        texts.append(f"    in {tests_text(line.tests)}")
    return [head, *texts]


def difference_lines(
    differences: Iterable[Difference], names: Sequence[str], width: int | None, verbose: bool
) -> list[str]:
    """Return a table of the lines that differ under other rules."""
    lines: list[str] = []
    for name in names:
        own = sorted({x for x in differences if x.rules == name})
        verb = "differs" if len(own) == 1 else "differ"
        lines.append(f"under {name}, {count_text(len(own), 'step')} {verb}")
        visible = own if verbose else own[:SHORT]
        rows = [
            (printable(f"{x.file}:{x.line}"), x.op, x.before, x.after, printable(x.text, 60))
            for x in visible
        ]
        if rows:
            lines += fitted([("where", "op", "numpy", name, "line"), *rows], width)
        if len(own) > len(visible):
            lines.append(f"... and {count_text(len(own) - len(visible), 'step')} more (-v)")
    return lines
