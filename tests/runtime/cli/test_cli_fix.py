"""`graphir fix`: fixes that were run, fixes that could not be, and edits that do not hold."""

from __future__ import annotations

import importlib
import json
import linecache
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from graphir import Graph
from graphir.location import Location
from graphir.passes.analysis.explanations.edits import Edit
from graphir.public import ExecutionError
from graphir.runtime.source_trials import edited_files
from tests.promotion_bugs.cases import CASES, PromotionBug
from tests.support.commands import cli, refused

PROGRAM = """\
import os
import threading
import numpy as np

def blend(image, depth):
    é = "ß"; fog = depth * np.float32(0.01)  # é
    return image - (
        fog  # of a line
        )

def both(x):
    ramp = np.arange(len(x)) / len(x)
    y = x * ramp
    return y, float(y.sum())

def wide_only(x):
    ramp = np.arange(len(x)) / len(x)
    if ramp.dtype != np.float64:
        raise TypeError("float64 alone")
    return x * ramp

def cancels(x):
    ramp = np.arange(len(x)) / len(x)
    return (x * ramp + 1e6) - 1e6 - ramp

def exits(x):
    ramp = np.arange(len(x)) / len(x)
    if ramp.dtype != np.float64:
        os._exit(3)
    return x * ramp

def hangs(x):
    ramp = np.arange(len(x)) / len(x)
    while ramp.dtype != np.float64:
        pass
    return x * ramp

def writes(x):
    try:
        open("out.txt", "w").close()
    except OSError:
        pass
    return x * (np.arange(len(x)) / len(x))

def starts(x):
    threading.Thread(target=print).start()
    return x * (np.arange(len(x)) / len(x))

def draws(x):
    return x * (np.arange(len(x)) / len(x)) + np.random.rand(len(x)).astype("f4")

def large(x):
    return x * (np.arange(len(x)) / len(x)), np.zeros(1 << 26)

def temporary(x):
    import shutil, tempfile
    folder = tempfile.mkdtemp()
    np.save(f"{folder}/x.npy", x)
    os.rename(f"{folder}/x.npy", f"{folder}/y.npy")
    x = np.load(f"{folder}/y.npy")
    shutil.rmtree(folder)
    return x * (np.arange(len(x)) / len(x))

def mutates(x):
    y = x * (np.arange(len(x)) / len(x))
    x[:] = 7
    return y

class Model:
    def __init__(self):
        self.weights = np.ones(4)
        self.calls = 0
    def run(self, x):
        self.calls += 1
        self.last = x * self.weights
        return self.last * np.float32(self.calls)

model = Model()

def wraps(x):
    total = np.zeros((), np.uint8)
    for value in x:
        total = total + value
    return total

COUNTS = np.array([100, 100, 100], np.uint8)

if __name__ == "__main__":
    x = np.ones(4, np.float32)
    y = x * (np.arange(4) / 4)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "program.py").write_text(PROGRAM.replace("\n", "\r\n"), newline="")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("program", "package.inner.program", "package.tables"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits of the same second and size
    yield tmp_path
    linecache.clearcache()  # of relative paths, which other tests have too
    sys.modules.pop("program", None)


def fixed(name: str, *inputs: str) -> Sequence[object]:
    """Apply a tried fix with `git apply`, and run the program plainly: its result."""
    status, out, err = cli("fix", f"program.py:{name}", *inputs)
    assert status == 0 and out.startswith("tried: "), (out, err)
    subprocess.run(["git", "apply", "-"], input=out.encode(), check=True)
    del sys.modules["program"]
    importlib.invalidate_caches()
    return out, importlib.import_module("program")


def test_a_tried_fix_applies_and_works(folder: Path) -> None:
    out, program = fixed("blend", "--input", "float32[8]", "--input", "int32[8]")
    assert str(out).splitlines()[0] == "tried: blend gives float32 (was float64), error 2.7e-08"
    result = vars(program)["blend"](np.ones(8, np.float32), np.ones(8, np.int32))
    assert result.dtype == np.float32
    assert (folder / "program.py").read_bytes().count(b"\r\n") == PROGRAM.count("\n")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("writes", "opens a file for writing at program.py:4"), ("starts", "starts a thread at")],
)
def test_an_act_is_not_repeated(folder: Path, name: str, reason: str) -> None:
    status, out, _ = cli("fix", f"program.py:{name}", "--input", "float32[4]", "--write")
    assert status == 1
    assert out.startswith(f"measured, not tried: the program {reason}"), out
    assert "+    return x * ((np.arange(len(x)) / len(x)).astype" in out
    assert (folder / "program.py").read_text().count("\n") == PROGRAM.count("\n")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("both", "a part of the result that is no array changes"),
        ("wide_only", "TypeError: float64 alone at program.py:19"),
    ],
)
def test_an_edit_that_does_not_hold_is_refused(name: str, problem: str) -> None:
    status, out, _ = cli("fix", f"program.py:{name}", "--input", "float32[4]", "--format", "json")
    answer = json.loads(out)
    assert (status, answer["version"], answer["fix"], answer["diff"]) == (1, 1, None, "")
    assert answer["refused"][0]["problem"] == problem


def test_what_has_no_source_lines_is_refused(folder: Path) -> None:
    g = Graph("g")
    g.output(g.input("int8", ("n",)) + 1)
    g.save(folder / "g.gir")
    assert "has no source lines to edit" in refused(3, "fix", "g.gir")


def edit(path: Path, start: tuple[int, int], end: tuple[int, int], text: str) -> Edit:
    return Edit(Location.at(str(path), *start, *end, source=str(path)), text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_edits_keep_the_bytes_around_them(folder: Path, encoding: str, end: str) -> None:
    lines = ["# coding: latin-1" if encoding == "latin-1" else "", 'é = "ß"; a = b +  c', "\td"]
    path = folder / f"{encoding}{len(end)}.py"
    path.write_bytes(end.join(lines).encode(encoding))
    edits = [edit(path, (2, 14), (2, 15), "f(b)"), edit(path, (2, 19), (2, 20), "g(c)")]
    (file,) = edited_files(edits)
    assert file.after.decode(encoding) == end.join(lines).replace("b +  c", "f(b) +  g(c)")
    with pytest.raises(ExecutionError, match="two edits of one expression"):
        edited_files([*edits, edit(path, (2, 14), (2, 20), "f(b) + c")])


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("f(a,  # one\n  b)", "f(a, b, c=1)", None),
        ("f(a,\n  b)", "f(a, b, c=1)", "f(a,\n  b, c=1)"),
        ("a *\n b", "a * b.astype('f')", "a *\n b.astype('f')"),
        ("(a)\n + (b)", "(a + 1) + (b)", "(a + 1)\n + (b)"),
        ("aa\n+ a", "a + a", "a + a"),
    ],
)
def test_an_edit_keeps_the_lines_of_an_expression(
    folder: Path, old: str, new: str, text: str | None
) -> None:
    path = folder / "lines.py"
    path.write_text(f"x = ({old})\n")
    end = 1 + old.count("\n"), len(old.rpartition("\n")[2]) + (1 if "\n" in old else 6)
    if text is None:
        with pytest.raises(ExecutionError, match="a comment inside"):
            edited_files([edit(path, (1, 6), end, new)])
        return
    (file,) = edited_files([edit(path, (1, 6), end, new)])
    assert file.after.decode() == f"x = ({text})\n"


# -- slow


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("draws", "measured, not tried: a second run differs"),
        ("large", "measured, not tried: the result cannot be compared: its arrays have more than"),
        ("exits", "no fix: no edit holds\nrefused: (np.arange(len(x)) / len(x)).astype"),
        ("hangs", "no fix: no edit holds\nrefused: (np.arange(len(x)) / len(x)).astype"),
        ("cancels", "no fix: no edit is known: the result is float64 because line 24"),
    ],
)
def test_the_reason_is_said(name: str, reason: str) -> None:
    status, out, _ = cli("fix", f"program.py:{name}", "--input", "float32[4]")
    assert status == 1 and out.startswith(reason), out


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["temporary", "mutates", "model.run"])
def test_other_programs_are_tried(name: str) -> None:
    fixed(name, "--input", "float32[4]")


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_wrong_value_is_mended() -> None:
    out, program = fixed("wraps", "--input", "program.py:COUNTS")
    assert "error 0 (was 0.85)" in str(out)
    assert vars(program)["wraps"](vars(program)["COUNTS"]) == 300


DRIVER = """\
from pathlib import Path
from {name} import inputs, program
arguments = inputs(Path())
globals().update({{f"a{{i}}": value for i, value in enumerate(arguments)}})
"""


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bug", CASES, ids=[x.name for x in CASES])
def test_a_tried_fix_mends_a_public_bug(folder: Path, bug: PromotionBug) -> None:
    source = Path(bug.module.__file__ or "")
    (folder / source.name).write_bytes(source.read_bytes())
    (folder / "driver.py").write_text(DRIVER.format(name=bug.name))
    count = len(bug.module.inputs(folder))
    inputs = [x for i in range(count) for x in ("--input", f"driver.py:a{i}")]
    sys.modules.pop("driver", None)
    status, out, _ = cli("fix", "driver.py:program", *inputs, "--rerun", "--write")
    assert (status == 0) == out.startswith("tried: ") == (bug.name not in UNFIXED), out
    code = f"import {bug.name} as m; from driver import program, arguments as a; import sys; "
    code += "sys.exit(bool(m.shows_fault(program(*a))))"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False)
    assert run.returncode == status


UNFIXED = ("finite_differences", "mask_colours")
"""The bugs without a tried fix: no edit is known, and the error of the result is unknown."""


@pytest.mark.exhaustive
def test_a_script_runs_again_on_demand(folder: Path) -> None:
    status, out, _ = cli("fix", "program.py")
    assert status == 1 and "a script runs again only with --rerun" in out
    status, out, err = cli("fix", "program.py", "--rerun", "--write")
    assert status == 0 and err == "graphir: wrote program.py\n", (out, err)
    code = "import runpy; print(runpy.run_path('program.py', None, '__main__')['y'].dtype)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "float32\n"


@pytest.mark.exhaustive
def test_the_module_that_is_edited_may_be_another_one(folder: Path) -> None:
    (folder / "package" / "inner").mkdir(parents=True)
    for name in ("package/__init__.py", "package/inner/__init__.py"):
        (folder / name).write_text("")
    tables = "import numpy as np\ndef scaled(x):\n    return x * np.linspace(0, 1, len(x))\n"
    (folder / "package" / "tables.py").write_text(tables)
    program = "from ..tables import scaled\ndef main(x):\n    return scaled(x)\n"
    (folder / "package" / "inner" / "program.py").write_text(program)
    for text in ("package/inner/program.py:main", "package.inner.program:main"):
        status, out, _ = cli("fix", text, "--input", "float32[4]")
        assert status == 0 and "--- a/package/tables.py\n" in out, out


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("library", "source"),
    [
        ("jax", "import jax.numpy as np\nimport jax\njax.config.update('jax_enable_x64', True)\n"),
        ("torch", "import torch\nimport torch as np\n"),
    ],
)
def test_programs_of_libraries_are_tried(folder: Path, library: str, source: str) -> None:
    pytest.importorskip(library)
    body = "def main(x):\n    return x * np.linspace(0, 1, 4, dtype=np.float64)\n"
    (folder / f"of_{library}.py").write_text(source + body)
    status, out, _ = cli(
        "fix", f"of_{library}.py:main", "--input", "float32[4]", "--keep", "float32"
    )
    assert status == 0 and out.startswith("tried: main gives float32 (was float64), error"), out
