"""The commands that read a graph: lower, casts and run, with their files."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from graphir import DType, Graph, ops
from graphir.runtime.native import is_installed
from graphir.runtime.value_files import read_input
from tests.support.commands import cli, refused


@pytest.fixture
def mixed(tmp_path):
    """A graph with an exact and a lossy implicit cast, and one that its author wrote."""
    g = Graph("mixed")
    x = g.input("int16", ("n",), name="x")
    y = g.input("float32", name="y")
    w = g.input("bfloat16", ("n",), name="w")
    g.output(x + y, w + x, x.cast(DType.int8))
    g.save(tmp_path / "mixed.gir")
    np.save(tmp_path / "x.npy", np.array([1, 2, 300], np.int16))
    return tmp_path / "mixed.gir"


# -- lower, casts


def test_lower_prints_text_that_parses(mixed):
    status, out, err = cli("lower", mixed)
    assert (status, err) == (0, "")
    assert str(Graph.parse(out)) == out.rstrip("\n")
    assert "because(lhs of add" in out and "max: int16 -> float32" in out


def test_lower_saves_large_constants_with_the_text(tmp_path):
    g = Graph("large")
    g.output(g.input("float32", (100,), name="x") + g.constant(np.arange(100, dtype=np.int16)))
    g.save(tmp_path / "large.gir")
    status, out, err = cli("lower", tmp_path / "large.gir")
    assert status == 0 and 'npz("' in out
    assert "--output" in err and err.count("\n") == 1
    assert cli("lower", tmp_path / "large.gir", "--output", tmp_path / "low.gir") == (0, "", "")
    assert str(Graph.load(tmp_path / "low.gir")) == out.rstrip("\n")


def test_casts_of_each_kind(mixed):
    out = cli("casts", mixed)[1]
    assert "lhs of add  int16  float32" in out.replace("  int16   ", "  int16  ")
    assert "test_cli_graphs.py:" in out

    def kinds(*argv):
        found = json.loads(cli("casts", mixed, "--format", "json", *argv)[1])
        return {(row["kind"], row["from"], row["to"]) for row in found["casts"]}

    exact, lossy = ("implicit", "int16", "float32"), ("implicit", "int16", "bfloat16")
    explicit = ("explicit", "int16", "int8")
    assert kinds() == {exact, lossy, explicit}
    assert kinds("--kind", "implicit") == {exact, lossy}
    assert kinds("--kind", "explicit") == {explicit}
    assert kinds("--lossy") == {lossy, explicit}
    assert kinds("--kind", "implicit", "--lossy") == {lossy}
    assert ("legalization", "float32", "bfloat16") in kinds("--kind", "legalization")


# -- run


def test_run_prints_outputs(mixed, tmp_path):
    np.savez(tmp_path / "w.npz", w=np.array([1, 2, 257], ml_dtypes.bfloat16))
    status, out, err = cli(
        *("run", mixed, "--input", f"x={tmp_path / 'x.npy'}", "--input", "y=0.5"),
        *("--input", f"w={tmp_path / 'w.npz'}"),
    )
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        *("output0: float32[3]", "[  1.5   2.5 300.5]"),
        *("output1: bfloat16[3]", "[2 4 556]"),
        *("output2: int8[3]", "[ 1  2 44]"),
    ]


def test_run_saves_outputs_and_reads_them_again(mixed, tmp_path):
    w = np.array([1, 2, 256], ml_dtypes.bfloat16)
    np.save(tmp_path / "w.npy", w)
    out = tmp_path / "out.npz"
    argv = ["run", mixed, "--input", f"x={tmp_path / 'x.npy'}", "--input", "y=3", "--output", out]
    status, printed, err = cli(*argv, "--input", f"w={tmp_path / 'w.npy'}")
    assert (status, printed) == (0, "")
    assert "output1.bfloat16" in err and err.count("\n") == 1
    with np.load(out, allow_pickle=False) as saved:
        assert sorted(saved.files) == ["output0", "output1.bfloat16", "output2"]
        np.testing.assert_array_equal(saved["output0"], np.array([4, 5, 303], np.float32))
        raw = saved["output1.bfloat16"]
    assert raw.dtype == np.uint16
    expected = np.array([2, 4, 556], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(raw.view(ml_dtypes.bfloat16), expected)
    np.testing.assert_array_equal(read_input(f"{out}:output1.bfloat16"), expected)
    assert cli(*argv, "--input", f"w={out}:output1.bfloat16")[0] == 0


@pytest.mark.parametrize("dtype", [d for d in DType if d.storage.isbuiltin == 2])
def test_dtypes_that_npz_cannot_name_come_back(tmp_path, dtype):
    values = np.array([1, 1, 1], dtype.storage)
    g = Graph("same")
    g.output(ops.flip(g.input(dtype, (3,), name="x")))
    g.save(tmp_path / "same.gir")
    name = f"x.{values.dtype.name}"
    np.savez(tmp_path / "in.npz", **{name: values.view(np.dtype(f"u{dtype.storage.itemsize}"))})
    argv = ("run", tmp_path / "same.gir", "--input", f"x={tmp_path / 'in.npz'}:{name}")
    assert cli(*argv, "--output", tmp_path / "out.npz")[0] == 0
    found = read_input(f"{tmp_path / 'out.npz'}")
    assert found.dtype == dtype.storage
    assert found.tobytes() == values.tobytes()


def test_unsigned_integers_stay_what_they_are(tmp_path):
    np.savez(tmp_path / "a.npz", **{"x.float32": np.ones(2, np.uint32), "y": np.ones(2, np.uint16)})
    assert read_input(f"{tmp_path / 'a.npz'}:x.float32").dtype == np.uint32
    assert read_input(f"{tmp_path / 'a.npz'}:y", DType.bfloat16).dtype == np.uint16


@pytest.mark.parametrize(
    "value, said",
    [
        ("missing.npy", "missing.npy: No such file or directory"),
        ("missing.npz:a", "missing.npz: No such file or directory"),
        ("corrupt.npy", "corrupt.npy is not a readable"),
        ("corrupt.npz", "corrupt.npz is not a readable"),
        ("cut.npz", "cut.npz is not a readable"),
        ("cut.npy", "cut.npy is not a readable"),
        ("object.npy", "object.npy is not a readable"),
        ("two.npz", "two.npz holds a, b, and no array was asked for"),
        ("two.npz:c", "two.npz holds a, b, and it has no 'c'"),
        ("nonsense", "'nonsense' is neither a number nor a file"),
        ("3", "input 'x' of graph 'mixed' is int16[n]; got the number 3"),
        ("two.npz:a", "got an array of float64"),
    ],
)
def test_bad_inputs_are_named(mixed, tmp_path, monkeypatch, value, said):
    monkeypatch.chdir(tmp_path)
    for name in ("corrupt.npy", "corrupt.npz"):
        Path(name).write_bytes(b"PK\x03\x04 no archive" if name.endswith("z") else b"\x93NUMPY\x09")
    np.savez("two.npz", a=np.zeros(3), b=np.zeros(3))
    Path("cut.npz").write_bytes(Path("two.npz").read_bytes()[:200])
    Path("cut.npy").write_bytes(Path("x.npy").read_bytes()[:-1])
    np.save("object.npy", np.array([None]), allow_pickle=True)
    np.save("w.npy", np.zeros(3, ml_dtypes.bfloat16))
    others = ("--input", "y=1", "--input", "w=w.npy")
    assert said in refused(3, "run", mixed, "--input", f"x={value}", *others)


def test_a_missing_or_unknown_input_is_named(mixed):
    assert "missing x, y, w" in refused(3, "run", mixed)
    assert "has no input 'z'" in refused(3, "run", mixed, "--input", "z=1")
    assert "--input y=... is given twice" in refused(
        3, "run", mixed, "--input", "y=1", "--input", "y=2"
    )


@pytest.mark.parametrize("command", ["run", "audit"])
def test_inputs_in_order_are_those_by_name(tmp_path, monkeypatch, command):
    """Whatever the inputs are called, and where the file cannot name their dtype."""
    monkeypatch.chdir(tmp_path)
    g = Graph("ordered", rules="jax")
    x, progress, memory = (
        g.input(dtype, ("n",), name=name)
        for dtype, name in [("bfloat16", "x"), ("float32", "progress"), ("int8", "memory")]
    )
    g.output(x * progress + memory)
    g.save("ordered.gir")
    np.save("x.npy", np.array([1, 2, 300], ml_dtypes.bfloat16))
    np.save("y.npy", np.array([0.1, 0.2, 0.3], np.float32))
    np.save("z.npy", np.ones(3, np.int8))

    def asked(*given: str) -> list[str]:
        return [command, "ordered.gir", *(word for one in given for word in ("--input", one))]

    by_name = cli(*asked("memory=z.npy", "progress=y.npy", "x=x.npy"))
    assert by_name[0] == 0 and by_name[1]
    assert cli(*asked("x.npy", "y.npy", "z.npy")) == by_name
    assert cli(*asked("x.npy", "y.npy", "memory=z.npy")) == by_name
    assert "'=3' is neither a number nor a file" in refused(3, *asked("=3", "y.npy", "z.npy"))


def test_an_output_that_cannot_be_written_is_named(tmp_path):
    g = Graph("one")
    g.output(g.scalar[DType.int8](1))
    g.save(tmp_path / "one.gir")
    argv = ("run", tmp_path / "one.gir", "--output", tmp_path / "no" / "out.npz")
    assert "No such file or directory" in refused(3, *argv)


@pytest.mark.parametrize("command", ["lower", "casts", "run", "plan"])
def test_bad_graphs_are_named(tmp_path, command):
    bad = tmp_path / "bad.gir"
    assert "bad.gir: No such file or directory" in refused(3, command, bad)
    bad.write_text("graph @g rules=max () -> (int8[]) {\n  %0 = nope() : int8[]\n  return %0\n}\n")
    message = refused(3, command, bad)
    assert "line 2, column 8" in message and "bad.gir" in message and "nope" in message
    bad.write_text("graph @g rules=mx () -> () {\n}\n")
    assert "line 1, column 16" in refused(3, command, bad)
    bad.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in refused(3, command, bad)


def test_a_graph_without_outputs_does_not_run(tmp_path):
    (tmp_path / "none.gir").write_text("graph @none rules=max () -> () {\n}\n")
    assert "has no outputs" in refused(3, "run", tmp_path / "none.gir")


def test_a_graph_too_large_for_memory_is_refused(tmp_path):
    size = 2**58
    full = f"%0 = full {{dtype=int8, value=1, shape=[{size}]}} : int8[{size}]"
    text = f"graph @huge rules=max () -> (int8[{size}]) {{\n  {full}\n  return %0\n}}\n"
    (tmp_path / "huge.gir").write_text(text)
    assert "llocate" in refused(3, "run", tmp_path / "huge.gir")


# -- plan


def test_plan_prints_the_steps(mixed, tmp_path):
    status, out, err = cli("plan", mixed, "--native", "off")
    assert (status, err) == (0, "")
    assert out.startswith("program mixed: ") and 'NumPy alone: native="off"' in out
    assert " region [n]: " in out and " elements in " not in out
    given = [f"--input={one}" for one in (tmp_path / "x.npy", "0.5", f"w={tmp_path / 'w.npy'}")]
    np.save(tmp_path / "w.npy", np.ones(3, ml_dtypes.bfloat16))
    assert " 3 elements in 1 blocks" in cli("plan", mixed, "--native", "off", *given)[1]


def test_plan_prints_machine_code(mixed, monkeypatch):
    monkeypatch.delenv("GRAPHIR_NATIVE", raising=False)
    if not is_installed():
        pytest.skip("llvmlite is not installed: pip install '.[native]'")
    assert "define " in cli("plan", mixed, "--ir", "0")[1]


@pytest.mark.parametrize(
    "asked, said",
    [(["--ir", "7"], "step 7 does not exist"), (["--native", "off", "--ir", "0"], 'native="off"')],
)
def test_machine_code_that_is_not_there(mixed, asked, said):
    assert said in refused(3, "plan", mixed, *asked)
