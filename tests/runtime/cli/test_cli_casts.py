"""The commands that report on casts: what they take, what they print, their status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from graphir import Graph
from graphir.passes.reports import REPORT_FORMATS
from tests.support.commands import cli
from tests.support.tables import every, sampled

SCRIPT = """
import numpy as np
from beside import SCALE
from graphir import Graph

def normalise(x, w):
    y = (x - x.mean()) * np.float64(SCALE)
    out = np.zeros(x.shape, np.float32)
    out += y
    return out * w

def build():
    g = Graph("built", rules="max")
    with g.layer("encoder"):
        y = g.input("int32", (3,), name="x") + g.input("bfloat16", (3,), name="y")
    g.output(y)
    return g

graph = build()
exact = Graph("exact")
exact.output(exact.input("int8", (3,), name="x") + exact.input("int16", (3,), name="y"))
none = Graph("none")
none.output(none.input("int8", (3,), name="x"))
stored = Graph("stored", rules="numpy")
z = stored.input("float32", (3,), name="z")
z += stored.input("float64", (3,), name="w")
stored.output(z)
number = 3
"""
TWO = ("--input", "x.npy", "--input", "w.npy")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "program.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "beside.py").write_text("SCALE = 0.1\n", encoding="utf-8")
    rng = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", rng.normal(100, 1, 50).astype(np.float32))
    np.save(tmp_path / "w.npy", rng.normal(0, 1, 50).astype(np.float16))
    np.save(tmp_path / "i.npy", np.array([1, 257, 3], np.int32))
    monkeypatch.chdir(tmp_path)
    return "program.py"


def told(*argv: str) -> list[dict[str, object]]:
    status, out, _ = cli(*argv, "--format", "json")
    assert status == 0
    return json.loads(out)["casts"]


def test_a_graph_of_a_script_or_of_a_function_in_it(script: str) -> None:
    out = cli("casts", f"{script}:graph")[1]
    assert out == cli("casts", f"{script}:build")[1]
    assert "program.py:15:13 [encoder]" in out
    assert "loses 257" in out


def test_every_format_and_a_file_to_write(script: str, tmp_path: Path) -> None:
    for name in REPORT_FORMATS:
        status, out, _ = cli("casts", f"{script}:graph", "--format", name)
        assert status == 0
        assert cli("casts", f"{script}:graph", "--format", name, "-o", "told")[1] == ""
        assert (tmp_path / "told").read_text(encoding="utf-8").strip() == out.strip()


@pytest.mark.parametrize(
    ("name", "on", "status"),
    [
        *(("graph", "lossy", 1), ("graph", "any", 1)),
        *(("exact", "lossy", 0), ("exact", "any", 1)),
        *(("none", "lossy", 0), ("none", "any", 0)),
        *(("stored", "lossy", 1), ("stored", "any", 1)),
    ],
)
@pytest.mark.parametrize("command", ["casts", "draw"])
def test_fail_on(script: str, command: str, name: str, on: str, status: int) -> None:
    found, out, _ = cli(command, f"{script}:{name}", "--fail-on", on)
    assert found == status
    assert out  # what is amiss is told all the same


LEAVING_NONE = (
    *(("--loss", "sign"), ("--layer", "decoder"), ("--kind", "explicit"), ("--dtype", "int8")),
    *(("--only", "exact"), ("--only", "to:float64,from:int8"), ("--only", "float->*")),
)
LEAVING_ALL = (
    *(("--loss", "precision"), ("--layer", "encoder"), ("--kind", "implicit"), ("--lossy",)),
    *(("--dtype", "int32"), ("--only", "to:bf16"), ("--only", "exact", "--only", "int->float")),
)


@sampled(4)
@every("form", REPORT_FORMATS)
def test_the_rows_that_a_report_shows_are_those_that_fail(script: str, form: str) -> None:
    """In each format, of a graph and of its run."""
    np.save("y.npy", np.zeros(3, bfloat16))
    run = ("--input", "i.npy", "--input", "y.npy")
    for filters in (*LEAVING_NONE, *LEAVING_ALL):
        for command, inputs in (("casts", ()), ("audit", run)):
            argv = (command, f"{script}:graph", *inputs, *filters, "--format", form)
            status, out, _ = cli(*argv, "--fail-on", "any")
            assert status == ("program.py" in out) == (filters in LEAVING_ALL), argv
            assert cli(*argv)[0] == 0


def test_gates_take_the_words_of_policies(script: str) -> None:
    words = {
        **dict.fromkeys(("to:bfloat16", "from:int32", "int->float", "precision", "any"), 1),
        **dict.fromkeys(("to:float64", "from:bool", "float->int", "range", "exact"), 0),
    }
    for word, status in words.items():
        for command in ("casts", "draw"):
            assert cli(command, f"{script}:graph", "--fail-on", word)[0] == status, word
    assert cli("casts", f"{script}:graph", "--fail-on", "to:float64, lossy")[0] == 1
    assert cli("casts", f"{script}:graph", "--fail-on", "range", "--fail-on", "lossy")[0] == 1
    for option in ("--fail-on", "--only"):
        status, out, err = cli("casts", f"{script}:graph", option, "to:float46")
        assert (status, out) == (2, "") and "near it are 'to:float64'" in err


def test_gates_of_a_run_take_what_it_lost(script: str) -> None:
    source = "import numpy as np\ndef f(x):\n    return x + x, np.float32(1) * x\n"
    Path("sums.py").write_text(source)
    for value, word, status in (
        *((100, "lossy", 1), (100, "range", 1), (100, "any", 1), (100, "precision", 0)),
        *((1, "lossy", 0), (1, "range", 0), (1, "to:float32", 1), (1, "to:int8", 0)),
    ):
        np.save("x.npy", np.array([value], np.int8))
        assert cli("audit", "sums.py:f", "--input", "x.npy", "--fail-on", word)[0] == status, word
    argv = ("audit", "sums.py:f", "--input", "x.npy", "--as-dtype", "float16,bfloat16")
    assert cli(*argv, "--fail-on", "to:bfloat16")[0] == 1
    assert cli(*argv, "--fail-on", "to:bfloat16", "--only", "to:float16")[0] == 0


def test_audit_of_a_function_on_numpy_arrays(script: str) -> None:
    status, out, _ = cli("audit", f"{script}:normalise", "--input", "x.npy", "--input", "w.npy")
    assert status == 0
    assert "program.py:9:5" in out
    assert "result of add" in out
    named = ("--input", "w=w.npy", "--input", "x=x.npy")
    casts = json.loads(cli("audit", f"{script}:normalise", *named, "--format", "json")[1])["casts"]
    (lossy,) = [one for one in casts if one["measured"]["changed"]]
    assert (lossy["location"]["line"], lossy["to"]) == (9, "float32")


def test_audit_tells_what_was_taken_as_given(tmp_path: Path) -> None:
    source = "import numpy as np\ndef f(x):\n    return x * np.linalg.svd(np.diag(x))[1]\n"
    (tmp_path / "given.py").write_text(source)
    np.save(tmp_path / "x.npy", np.ones(3))
    run = ("audit", f"{tmp_path}/given.py:f", "--input", f"{tmp_path}/x.npy")
    status, out, err = cli(*run)
    assert (status, err) == (0, "")
    assert out.startswith("not recorded: numpy.linalg.svd at ")
    assert "given.py:3:16 is taken as given" in out.splitlines()[0]
    assert cli(*run, "-v")[1] == out  # a list of one
    assert "numpy.linalg.svd at " in cli(*run, "--format", "json")[2]
    assert cli(*run, "--quiet")[1].splitlines() == [out.splitlines()[1]]


def test_audit_fails_on_what_was_lost(script: str) -> None:
    given = ("--input", "x.npy", "--input", "w.npy")
    assert cli("audit", f"{script}:normalise", *given, "--fail-on", "lossy")[0] == 1
    np.save("small.npy", np.array([1, 2, 3], np.int32))
    ones = ("--input", "y=ones.npz:y")
    graph = Graph.parse(
        "graph @g rules=max (%x: int32[3], %y: float16[3]) -> (float16[3]) {\n"
        '  %0 = add(%x, %y) : float16[3] loc("a.py":1:1)\n  return %0\n}'
    )
    graph.save("g.gir")
    np.savez("ones.npz", y=np.ones(3, np.float16))
    assert cli("audit", "g.gir", "--input", "x=small.npy", *ones, "--fail-on", "lossy")[0] == 0
    assert cli("audit", "g.gir", "--input", "x=small.npy", *ones, "--fail-on", "any")[0] == 1
    np.save("large.npy", np.array([1, 2049, 3], np.int32))
    assert cli("audit", "g.gir", "--input", "x=large.npy", *ones, "--fail-on", "lossy")[0] == 1


def test_against_tells_what_other_rules_change(script: str) -> None:
    out = cli("casts", f"{script}:graph", "--against", "jax_strict")[1]
    assert "jax_strict" in out
    given = ("--input", "x.npy", "--input", "w.npy", "--against", "jax_x32")
    out = cli("audit", f"{script}:normalise", *given)[1]
    assert "numpy -> jax_x32" in out


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("casts", "program.py"), "name what it defines, as in program.py:function"),
        (("casts", "program.py:nothing"), "defines no 'nothing'; it has"),
        (("casts", "program.py:number"), "neither a Graph nor a function"),
        (("casts", "absent.py:f"), "absent.py: no such file"),
        (("audit", "program.py:normalise", "--input", "absent.npy"), "absent.npy: No such file"),
        (("audit", "program.py:graph", "--input", "i.npy"), "is missing y; it takes"),
        (
            ("audit", "program.py:graph", "--input", "x=i.npy", "--input", "x=i.npy"),
            "given twice",
        ),
        (("audit", "program.py:normalise", *TWO, "--rules", "jax"), "jax"),
        (("audit", "program.py:normalise"), "(x, w): missing a required argument: 'x'"),
        (("audit", "program.py:normalise", "--input", "z=i.npy"), "--input NAME=VALUE"),
        (("casts", "program.py:normalise"), "graphir audit program.py:normalise --input x.npy"),
        (("draw", "program.py:normalise"), "graphir audit program.py:normalise --input x.npy"),
    ],
)
def test_what_cannot_be_asked(script: str, argv: tuple[str, ...], error: str) -> None:
    assert script
    status, out, err = cli(*argv)
    assert (status, out) == (3, "")
    assert error in err


def test_a_function_that_returns_no_graph_is_for_audit(script: str, tmp_path: Path) -> None:
    assert script
    (tmp_path / "plain.py").write_text("def f():\n    return 3\n", encoding="utf-8")
    status, _, err = cli("casts", "plain.py:f")
    assert status == 3
    assert "graphir audit plain.py:f --input x.npy" in err
