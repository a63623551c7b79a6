"""Findings as linters have them: baselines, accepted lines, and the programs of a project."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from graphir import Graph, Policy, PromotionError
from graphir.passes.reports.json_ import schema
from graphir.runtime import record
from graphir.runtime.testing import assert_no_lossy_casts
from tests.pages import ROOT, blocks
from tests.support.commands import cli, refused
from tests.support.reports import program as module_of
from tests.support.sarif import concise_lines

SCALES = """\
import numpy as np

def scaled(x, factor):
    return x * np.float32(2) / np.float32(3)

def shares(counts, weights):
    return counts * weights
"""
ONE, TWO = ("--input", "float32[8]"), ("--input", "int64[8]", "--input", "float32[8]")
SCALED = ("scales_of_tests.py:scaled", *ONE, "--input", "2")
SHARES = ("scales_of_tests.py:shares", *TWO)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(SCALES)
    return tmp_path


def write(text: str, name: str = "scales_of_tests") -> None:
    """Write a module of the project, which the next command imports anew."""
    import linecache
    import sys

    Path(f"{name}.py").write_text(text)
    sys.modules.pop(name, None)
    linecache.checkcache()


@pytest.mark.parametrize("command", ["casts", "audit"])
def test_a_baseline_has_programs_and_names_the_line_that_changed(command: str) -> None:
    baseline = ("--baseline", "casts.json")
    for program in (SCALED, SHARES):
        status, out, _ = cli(command, *program, *baseline)
        assert (status, out.splitlines()[-1]) == (
            0,
            f"wrote {program[0]} to the baseline casts.json",
        )
    kept = Path("casts.json").read_text()
    for program in (SCALED, SHARES):
        status, out, _ = cli(command, *program, *baseline, "-q")
        assert status == 0 and out.endswith(
            "no dtype is wider and no loss is new since casts.json\n"
        )
    write(SCALES.replace("\ndef", "\n# moved\ndef").replace("np.float32(3)", "np.float64(3)"))
    assert cli(command, *SHARES, *baseline)[0] == 0
    status, out, _ = cli(command, *SCALED, *baseline)
    assert status == 1
    assert "1 line changed dtypes since casts.json:\nscales_of_tests.py:5: return x * np" in out
    assert "makes output0 float64, was float32" in out
    status, out, err = cli(command, *SCALED, *baseline, "--format", "concise")
    assert status == 1 and "cause/dtype" in out and "scales_of_tests.py:5: return x" in err
    assert Path("casts.json").read_text() == kept
    Path("casts.json").write_text("{}")
    assert "is no baseline" in cli(command, *SCALED, *baseline)[2]
    assert cli("audit", *SCALED, *baseline, "--as-dtype", "float16")[0] == 2


SHARE = """\
def shares(counts, weights):
    text = "# graphir: ignore"
    wide = (weights
            * counts)  # graphir: ignore[cast/precision]
    return wide / counts.sum(){comment}

def unknown(x):
    return x * 2  # graphir: ignore[cast/precsion]

def never_ran(x):
    return x * 2  # graphir: ignore
"""
ALL = "  # noqa  # graphir: ignore -- counts are small"


def test_a_comment_accepts_its_line_and_gates_honour_it() -> None:
    write(SHARE.format(comment=""))
    status, out, _ = cli("casts", *SHARES, "--fail-on", "lossy")
    assert status == 1 and "1 can lose something; 1 line accepted by graphir: ignore" in out
    write(SHARE.format(comment=ALL))
    status, out, _ = cli("casts", *SHARES, "--fail-on", "lossy")
    assert status == 0 and "0 can lose something; 2 lines accepted by graphir: ignore" in out
    assert "`graphir: ignore[cast/precsion]` names no code" in out
    assert "accepts nothing" not in out
    assert cli("casts", *SHARES, "--fail-on", "to:float64")[0] == 1  # the exact cast of line 3
    assert cli("draw", *SHARES, "--fail-on", "lossy")[0] == 0
    status, out, err = cli("audit", *SHARES, "--fail-on", "lossy", "--format", "concise")
    (unused,) = [line for line in concise_lines(out) if line[3] != "cause/dtype"]
    assert status == 0 and "2 lines accepted" in err
    assert unused[:4] == ("scales_of_tests.py", 8, 1, "ignore/unused") and "use cast" in unused[4]


def test_a_comment_that_accepts_nothing_is_reported() -> None:
    codes = "  # graphir: ignore[cast/precision, loss/wrap]"
    write(
        SHARE.format(comment=codes).replace(
            "    text = ", "    text = 2  # graphir: ignore\n    x = "
        )
    )
    document = json.loads(cli("casts", *SHARES, "--lossy", "--format", "json")[1])
    pytest.importorskip("jsonschema").validate(document, schema())
    assert [x["line"] for x in document["accepted"]] == [5, 6]
    unused = {x["line"]: x["text"] for x in document["unused_ignores"]}
    assert (
        unused.keys() == {2, 6, 9} and unused[6] == "`graphir: ignore[loss/wrap]` accepts nothing"
    )
    for wrong in ("[cast/precision", "[]", "d"):
        write(SHARE.format(comment=f"  # graphir: ignore{wrong}"))
        assert cli("casts", *SHARES, "--fail-on", "lossy")[0] == 1, wrong


def test_comments_bind_policies_assertions_and_recordings(project: Path) -> None:
    text = "def build(x, y):\n    return x * y{}\n"
    for comment, status in (("", 1), ("  # graphir: ignore[cast/precision]", 0)):
        build = module_of(text.format(comment), f"policy_of_tests_{status}.py")["build"]
        arrays = np.arange(8), np.ones(8, np.float32)
        graph = Graph("kept", rules="jax", policy=Policy(forbid="lossy"))
        product = build(graph.input("int32", (8,)), graph.input("float32", (8,)))
        if status:
            with pytest.raises(PromotionError, match="forbids 1 cast"):
                graph.output(product)
            with pytest.raises(AssertionError, match="1 cast can lose"):
                assert_no_lossy_casts(build, *arrays)
        else:
            graph.output(product)
            assert_no_lossy_casts(build, *arrays)
        report = record(build, *arrays).report()
        assert len(report) == 2 and len(report.without_accepted()) == 1 + status


TABLE = """
[tool.graphir]
fail-on = "to:complex64"
[[tool.graphir.programs]]
target = "scales_of_tests.py:scaled"
inputs = ["float32[8]", 2]
[[tool.graphir.programs]]
target = "scales_of_tests.py:shares"
inputs = {weights = "float32[8]", counts = "int64[8]"}
baseline = "casts.json"
"""


def test_the_programs_of_a_project_are_checked_together() -> None:
    project = Path("pyproject.toml")
    project.write_text(TABLE)
    write(SCALES.replace("counts * weights", "counts * weights  # graphir: ignore[cast/precision]"))
    status, out, err = cli("casts")
    assert (status, err) == (0, "")
    assert (
        out.startswith("scales_of_tests.py:scaled:\n") and "\n\nscales_of_tests.py:shares:\n" in out
    )
    assert out.endswith("wrote scales_of_tests.py:shares to the baseline casts.json\n")
    # A third program: a use of the second's function in which its comment accepts nothing.
    other = "[[tool.graphir.programs]]\ntarget = 'scales_of_tests.py:shares'\n"
    other += "fail-on = ['any']\nrules = 'numpy'\ninputs = ['float32[8]', 'float64[8]']\n"
    project.write_text(TABLE + other)
    status, out, _ = cli("casts", "--format", "concise", "-o", "found.log")
    codes = [line[3] for line in concise_lines(Path("found.log").read_text())]
    assert (status, out) == (1, "") and codes and "ignore/unused" not in codes
    assert cli("casts", "--fail-on", "to:bool", "-q")[0] == 0  # above the settings
    project.write_text(
        TABLE + other + "[[tool.graphir.programs]]\ntarget = 'scales_of_tests.py:none'\n"
    )
    status, out, err = cli("casts", "--format", "github")
    assert status == 3 and "defines no 'none'" in err and "::error file=scales" in out
    assert cli("casts", "--format", "sarif")[0] == 2


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("fail-on", "failon", "tool.graphir.failon is no setting; write fail-on"),
        ('"to:complex64"', '"lossi"', "tool.graphir.fail-on: 'lossi' is no kind of cast; near it"),
        ("target", "tarjet", "tool.graphir.programs[0].tarjet is no setting; write target"),
        (
            '"float32[8]", 2]',
            "[1]]",
            "tool.graphir.programs[0].inputs has an input that is neither",
        ),
        ("baseline", "rules", "tool.graphir.programs[1].rules: casts.json: No"),
        (
            'inputs = ["float32[8]", 2]',
            "inputs = 2",
            "[0].inputs is neither a list nor a table; got 2",
        ),
        (
            'target = "scales_of_tests.py:shares"',
            "",
            "programs[1].target is missing; write target = ",
        ),
        (
            "[[tool.graphir.programs]]",
            "[[tool.graphir.program]]",
            "tool.graphir.program is no setting",
        ),
        ("[tool.graphir]", "[tool.graphir", "Expected ']'"),
        ('fail-on = "to:complex64"', "unseen = 1", "unseen is neither fail nor pass; got 1; write"),
    ],
)
def test_errors_of_the_table_name_file_key_and_fix(before: str, after: str, message: str) -> None:
    Path("pyproject.toml").write_text(TABLE.replace(before, after))
    line = refused(2, "casts")
    assert line.startswith("graphir: pyproject.toml: ") and message in line


def test_casts_alone_asks_for_a_program() -> None:
    assert "[[tool.graphir.programs]]" in refused(2, "casts")
    Path("pyproject.toml").write_text("[tool]\n")
    assert "has no [tool.graphir]" in refused(2, "casts")
    assert "--input belongs to a program" in refused(2, "casts", "--input", "3")


@pytest.mark.skipif(which("vim") is None, reason="vim is not installed")
def test_vim_goes_to_each_finding() -> None:
    (block,) = [x for x in blocks(ROOT / "docs" / "editors.md") if x.file == "graphir.vim"]
    Path("graphir.vim").write_text(block.text)
    lines = cli("audit", *SHARES, "--format", "concise")[1]
    Path("found.txt").write_text(lines)
    expression = "map(getqflist(), {_, x -> [bufname(x.bufnr), x.lnum, x.col, x.valid]})"
    commands = (
        "source graphir.vim",
        "cgetfile found.txt",
        f"call writefile([json_encode({expression})], 'list')",
    )
    command = ["vim", "-es", "-u", "NONE", *[y for x in commands for y in ("-c", x)], "-c", "qa!"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=60)
    read = json.loads(Path("list").read_text())
    assert read == [[*line[:3], 1] for line in concise_lines(lines)] and read
