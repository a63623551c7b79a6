"""The pytest plugin: records the casts of a package as its tests run, if --casts asks for it.

pytest imports this module in each project of an environment. It imports nothing else of graphir,
and not NumPy, until an option or a fixture asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from graphir.runtime.testing.run import CastsRun

_SETTINGS = ("casts", "casts_fail", "casts_baseline", "casts_against")
_NAME = "graphir-casts"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and the settings of the same names."""
    group = parser.getgroup("casts", "dtype casts of the package under test (graphir)")
    group.addoption(
        "--casts",
        nargs="?",
        const="",
        metavar="PACKAGE",
        help="record the functions of a package as its tests run, and report their casts; without "
        "PACKAGE, that of the project",
    )
    group.addoption(
        "--casts-fail",
        action="append",
        default=[],
        metavar="KIND",
        help="fail the run if there is a cast of a kind: lossy, precision, to:float64, int->float",
    )
    group.addoption(
        "--casts-baseline",
        metavar="FILE",
        help="fail the run if a result is wider, or a loss new, since FILE, which the first run "
        "writes",
    )
    group.addoption("--casts-update", action="store_true", help="write the baseline again")
    group.addoption(
        "--casts-against",
        action="append",
        default=[],
        metavar="RULES",
        help="list the lines that have other dtypes under other rules: jax, numpy_legacy",
    )
    group.addoption(
        "--casts-unseen",
        choices=("fail", "pass"),
        help="what a function that tests call and no recording saw does to a run with "
        "--casts-fail or a baseline; fail if not given",
    )
    parser.addini("casts", "the package whose casts are reported", default=None)
    parser.addini("casts_fail", "kinds of casts that fail the run", type="args", default=[])
    parser.addini("casts_baseline", "the file of --casts-baseline", default="")
    parser.addini("casts_against", "rules of --casts-against", type="args", default=[])
    parser.addini("casts_unseen", "fail or pass, as --casts-unseen", default="fail")


def _setting(config: pytest.Config, name: str) -> Any:
    value = config.getoption(name)
    return value if value not in (None, []) else config.getini(name)


def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks of a run with casts."""
    if config.option.collectonly:
        return
    settings = {name: _setting(config, name) for name in _SETTINGS}
    if settings["casts"] is not None or any(settings[name] for name in _SETTINGS[1:]):
        config.pluginmanager.register(CastsPlugin(config, settings), _NAME)


class CastsPlugin:
    """The hooks of a run with casts: each calls the run, which is loaded after the collection."""

    def __init__(self, config: pytest.Config, settings: dict[str, Any]) -> None:
        self._config = config
        self._settings = settings
        self._run: CastsRun | None = None
        self._problem = ""

    @property
    def run(self) -> CastsRun:
        """The run, which imports the rest of graphir."""
        if self._run is None:
            from graphir.errors import GraphirError
            from graphir.runtime.testing.run import CastsRun

            settings = self._settings
            file = settings["casts_baseline"]
            try:
                self._run = CastsRun(
                    settings["casts"] or "",
                    self._config.rootpath,
                    settings["casts_fail"],
                    settings["casts_against"],
                    self._config.rootpath / Path(file) if file else None,
                    bool(self._config.getoption("casts_update")),
                    _setting(self._config, "casts_unseen") == "pass",
                )
            except (GraphirError, ValueError) as error:
                raise pytest.UsageError(str(error)) from None
        return self._run

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Watch the functions of the package, now that tests have imported it."""
        hides_dtypes = "ml_dtypes" not in sys.modules
        self.run.start(hides_dtypes, [item.nodeid for item in session.items])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record what fixtures call."""
        self.run.watch.begin()
        with self.run.watch.test(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record what the test calls."""
        with self.run.watch.test(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record what the ends of fixtures call; end a shadow after its last test."""
        with self.run.watch.test(item.nodeid):
            result = yield
        self.run.watch.leave(last=True)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Report a failure in a shadow without its traceback, which takes long and nobody reads."""
        if call.when == "collect":
            return None
        is_failure = call.excinfo is not None and not call.excinfo.errisinstance(
            pytest.skip.Exception
        )
        if not (is_failure and self.run.watch.is_shadow):
            return None
        text = "it fails in a shadow"
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, call.when)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in the ledger of a worker of pytest-xdist."""
        ledger = getattr(node, "workeroutput", {}).get(_NAME)
        if ledger is not None:
            self.run.add(ledger)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge the ledger, or hand it to the controller."""
        output = getattr(self._config, "workeroutput", None)
        if self._run is None:
            return
        self._run.watch.leave()
        if output is not None:
            output[_NAME] = self.run.finish_worker()
        elif session.testscollected:
            self._judge(session)

    def _judge(self, session: pytest.Session) -> None:
        from graphir.errors import GraphirError

        passed = session.exitstatus == pytest.ExitCode.OK
        try:
            if self.run.finish() and passed:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        except GraphirError as error:
            self._problem = str(error)
            if passed:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the report."""
        if self._problem:
            terminalreporter.write_line(self._problem, red=True)
        if self._run is None or not self.run.finished:
            return
        verbose = self._config.get_verbosity() > 0
        terminalreporter.section("casts", sep="=")
        width = terminalreporter._tw.fullwidth if terminalreporter.isatty else None
        for line, markup in self.run.report(width, verbose):
            terminalreporter.write_line(line, **markup)


@pytest.fixture
def casts() -> Any:
    """The function `casts(function, *arguments)`, which gives the report of casts of a call."""
    from graphir.runtime.testing import casts_of

    return casts_of
