"""Source files that reports show lines of: those of running code, and of texts only where asked."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from graphir import Graph, source_text
from graphir.passes import Policy, cast_report
from graphir.passes.reports import REPORT_FORMATS
from graphir.runtime.cli.main import main
from tests import ROOT

SECRET = "hunter2 = the_secret_value"


def text_of(file: str) -> str:
    return (
        "graph @g rules=max (%x: int16[], %y: float32[]) -> (float32[]) {\n"
        f'  %0 = add(%x, %y) : float32[] loc("{file}":1:1 to :26)\n'
        "  return %0\n}\n"
    )


def every_format(graph: Graph) -> str:
    report = cast_report(graph)
    return "\n".join([str(report), *(write(report) for write in REPORT_FORMATS.values())])


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "some secret file"
    path.write_text(f"{SECRET}\n")
    return path


def test_a_parsed_text_reads_no_file(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (str(secret), secret.name):
        monkeypatch.chdir(secret.parent)
        graph = Graph.parse(text_of(file))
        told = every_format(pickle.loads(pickle.dumps(graph)))
        assert "hunter2" not in told
        assert "some secret file:1:1" in told


def test_lines_are_shown_of_files_inside_the_directory_that_was_named(secret: Path) -> None:
    folder = secret.parent / "src"
    folder.mkdir()
    (folder / "net.py").write_text("total = first + second_one\n")
    for file in ("net.py", str(folder / "net.py")):
        told = every_format(Graph.parse(text_of(file), sources=folder))
        assert "first + second_one" in told
    outside = ["../some secret file", str(secret), "/dev/zero", "a\\u0000b", "\\ud800", ".", ""]
    if os.name == "posix":
        (folder / "link").symlink_to(secret)
        outside.append("link")
    for file in outside:
        told = every_format(Graph.parse(text_of(file), sources=folder))
        assert "hunter2" not in told


def test_commands_read_sources_where_they_are_told_to(
    secret: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.gir").write_text(text_of(secret.name))
    for more, shown in (([], False), (["--sources", str(tmp_path)], True)):
        for form in ("details", "markdown", "html"):
            main(["casts", str(tmp_path / "net.gir"), "--format", form, *more])
            assert ("hunter2" in capsys.readouterr().out) == shown


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no FIFOs")
def test_only_regular_files_of_bounded_size_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "large.py").write_text("x = 1\n" * 100)
    monkeypatch.setattr(source_text, "LARGEST", 500)
    for path in (tmp_path / "pipe.py", tmp_path / "large.py", "/dev/zero", tmp_path, "a\0b"):
        assert source_text.source_line(str(path), 1) == ""
    for file in ("pipe.py", "large.py"):
        assert "g: 1 use of a cast" in every_format(Graph.parse(text_of(file), sources=tmp_path))


def test_a_warning_of_a_parsed_graph_reads_no_file(secret: Path) -> None:
    graph = Graph.parse(text_of(str(secret)))
    judged = Graph("judged", policy=Policy(casts="warn"))
    assert graph.policy is None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judged.policy.check(graph, graph.outputs)
    (warning,) = caught
    shown = warnings.formatwarning(
        warning.message, warning.category, warning.filename, warning.lineno
    )
    assert str(secret) in shown
    assert "hunter2" not in shown


@pytest.mark.skipif(os.name != "posix", reason="the working directory cannot be removed")
def test_a_working_directory_that_was_removed(tmp_path: Path) -> None:
    code = """
import os, sys
from graphir import DType, Graph, GraphirError
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
g = Graph("g", rules="jax_strict")
x, y = g.input("int16", name="x"), g.input("float32", name="y")
try:
    x + y
except GraphirError as error:
    print(isinstance(error, TypeError), "<string>:8" in str(error))
from graphir.passes import cast_report
from graphir.runtime import record
import numpy as np
g = Graph("g")
g.output(g.input("int16", name="x") + g.input("float32", name="y"))
print(str(cast_report(g)).count("implicit"))
print(str(record(lambda x: x + np.float64(1), np.ones(3, np.float32)).audit()).count("implicit"))
from graphir.runtime.cli.main import main
print(main(["casts", "net.gir"]), main(["promote", "int8", "float32"]))
"""
    root = ROOT
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["True True", "1", "1"], done
    assert lines[-1] == "3 0"
    assert "net.gir: No such file" in done.stderr
