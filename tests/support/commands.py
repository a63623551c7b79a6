"""Runs commands of the command line inside the tests' own process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from graphir.runtime.cli.main import main


def cli(*argv: object) -> tuple[int, str, str]:
    """Run a command: its status, its stdout and its stderr."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(arg) for arg in argv])
    return status, out.getvalue(), err.getvalue()


def refused(status: int, *argv: object) -> str:
    """The one line that a refused command leaves on stderr; nothing is left on stdout."""
    found, out, err = cli(*argv)
    assert (found, out) == (status, "")
    assert err.startswith("graphir")
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    return err
