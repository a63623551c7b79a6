"""Settings of the whole suite: the hypothesis profiles, chosen by HYPOTHESIS_PROFILE."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from graphir.promotion import registry
from graphir.runtime.sources.op_rows import OpRows

# An interrupt stops the programs that tests start, also where the suite runs in the background of a
# shell, which has its processes ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs that tests start read the bytecode of the packages that the first of them has compiled:
# to compile these anew takes a program more time than all that it does.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Kernels are compiled anew: no test reads or writes the user's cache directory.
os.environ.setdefault("GRAPHIR_NATIVE_CACHE", "0")

# A fault in a row of a source is a failure here. For users the op becomes a call.
OpRows.raises_faults = True

pytest.register_assert_rewrite(
    "tests.support.evaluator",
    "tests.support.native_runs",
    "tests.support.numpy_calls",
    "tests.support.replays",
    "tests.support.rewrites",
)

# The same examples on every machine and run, and no time limits that a busy machine would miss.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=20,
    database=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("full", parent=settings.get_profile("default"), max_examples=50)
settings.register_profile("short", parent=settings.get_profile("default"), max_examples=8)
settings.register_profile("medium", parent=settings.get_profile("default"), max_examples=16)
settings.register_profile(
    "long", parent=settings.get_profile("default"), derandomize=False, max_examples=2000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--only-skip REASONS`, with which any other skip fails the run."""
    parser.addoption("--only-skip", metavar="REASONS", help="a regular expression: else a failure")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which tests were skipped for reasons that `--only-skip` does not match."""
    allowed = session.config.getoption("--only-skip")
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if allowed is None or reporter is None:  # a worker of pytest-xdist has no reporter
        return
    reasons = {report.longrepr[2] for report in reporter.stats.get("skipped", ())}
    for reason in sorted(reason for reason in reasons if not re.search(allowed, reason)):
        reporter.write_line(f"\nnot among the skips allowed: {reason}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests with @given as `drawn`: `.ci/run` draws more examples for them."""
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("drawn")


def pytest_collection_finish() -> None:
    """Freeze what the collection made: each run of the garbage collector would walk all tests."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the exhaustive tests that the run left out, and print the command that runs them."""
    deselected = terminalreporter.stats.get("deselected", ())
    count = sum(item.get_closest_marker("exhaustive") is not None for item in deselected)
    if count and terminalreporter.config.option.markexpr == "not exhaustive":
        command = "python -m pytest -m exhaustive"
        terminalreporter.write_line(f"{count} exhaustive tests were left out; run them: {command}")


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """Rule sets that a test registers are gone after it."""
    known = dict(registry._REGISTRY)
    yield
    registry._REGISTRY.clear()
    registry._REGISTRY.update(known)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The tier as in a process of its own: not yet tried, with no kernels."""
    from graphir.runtime.native import compilation, engine, probe

    monkeypatch.delenv("GRAPHIR_NATIVE", raising=False)
    monkeypatch.setattr(compilation, "_logged", [])
    monkeypatch.setattr(engine, "_kernels", {})
    monkeypatch.setattr(engine, "call", None)
    probe._start.cache_clear()
    yield engine
    probe._start.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    found = tmp_path / "cache"
    monkeypatch.setenv("GRAPHIR_NATIVE_CACHE", str(found))
    return found


@pytest.fixture(autouse=True, scope="session")
def _checked_reports() -> Iterator[None]:
    """Every report that an audit in a test makes agrees with itself (see report_checks)."""
    module: Any = import_module("graphir.runtime.audit.audit")
    from tests.support.report_checks import faults

    audited = module.run_passes

    def checked(*args: Any, **kwargs: Any) -> Any:
        report, profile = audited(*args, **kwargs), sys.getprofile()
        sys.setprofile(None)  # a test counts the work of the audit alone
        try:
            assert not list(faults(report))
        finally:
            sys.setprofile(profile)
        return report

    module.run_passes = checked
    yield
    module.run_passes = audited
