"""One test run with casts: the package under test, its settings, its ledger, and its judgement."""

from __future__ import annotations

import pickle
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from graphir.passes import Policy
from graphir.public import GraphError, rules
from graphir.runtime.testing import baseline
from graphir.runtime.testing.ledger import Ledger
from graphir.runtime.testing.report import (
    difference_lines,
    finding_lines,
    forbidden_lines,
    report_lines,
    unseen_gate_lines,
)
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
        policy = Policy(forbid=forbid) if forbid else None
        for name in self.against:
            rules(cast("Any", name))
        self._file, self._root = file, root
        self._former = None
        if file is not None and file.exists() and not update:
            self._former = baseline.read_baseline(file)
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
            baseline.write_baseline(self._file, self._ledger, self.package)
        return bool(self._findings or forbidden_lines(self._ledger) or self._unseen_lines())

    def _unseen_lines(self) -> list[str]:
        is_judged = self._is_gate and not self._passes_unseen
        return unseen_gate_lines(self._ledger) if is_judged else []

    def report(self, width: int | None, verbose: bool) -> Iterator[tuple[str, dict[str, bool]]]:
        """Yield the lines of the report, each with its markup."""
        ledger = self._ledger
        for line in report_lines(ledger, self.package, width, verbose):
            yield line, {}
        for line in difference_lines(ledger.differences, self.against, width, verbose):
            yield line, {}
        for line in forbidden_lines(ledger):
            yield line, {"red": True}
        for line in self._unseen_lines():
            yield line, {"red": True}
        if self._former is not None:
            for line in finding_lines(self._findings, self._display_path(self._file)):
                yield line, {"red": True} if self._findings else {"green": True}
        elif self._file is not None:
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
