"""The command line: each command, its formats, its errors and its exit status."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import graphir
from graphir import DType, Graph, Lattice, ops, rules
from graphir.drawing import lattice_dot, levels
from graphir.promotion.tables import FORMATS
from runtime.cli import main
from runtime.files import number, read_input

ROOT = Path(graphir.__file__).parent.parent
COMMANDS = ["demo", "rules", "promote", "table", "lattice", "lower", "casts", "run"]


@pytest.fixture
def cli(capsys):
    """Run a command: its status, its stdout and its stderr."""

    def run(*argv):
        status = main([str(arg) for arg in argv])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def refused(cli):
    """The one line that a refused command leaves on stderr; nothing is left on stdout."""

    def run(status, *argv):
        found, out, err = cli(*argv)
        assert (found, out) == (status, "")
        assert err.startswith("graphir")
        assert err.count("\n") == 1 and err.endswith("\n"), err
        return err

    return run


@pytest.fixture
def mixed(tmp_path):
    """A graph of x: int16[n], y: float32[], w: bfloat16[n] with an exact and a lossy implicit cast."""
    g = Graph("mixed")
    x = g.input("int16", ("n",), name="x")
    y = g.input("float32", name="y")
    w = g.input("bfloat16", ("n",), name="w")
    g.output(x + y, w + x, x.cast(DType.int8))
    g.save(tmp_path / "mixed.gir")
    np.save(tmp_path / "x.npy", np.array([1, 2, 300], np.int16))
    return tmp_path / "mixed.gir"


def process(*argv, code=0, **kwargs):
    done = subprocess.run(
        [sys.executable, "-m", "graphir", *map(str, argv)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
        **kwargs,
    )
    assert done.returncode == code, done.stderr
    return done


# -- help, version, usage


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(cli, command):
    status, out, err = cli(command, "--help")
    assert (status, err) == (0, "")
    assert f"example: graphir {command}" in out


def test_help_lists_every_command(cli):
    status, out, _ = cli("--help")
    assert status == 0
    assert all(f"    {command} " in out for command in COMMANDS)
    assert "example: graphir " in out


def test_version(cli):
    status, out, _ = cli("--version")
    assert status == 0
    assert out.startswith("graphir")


@pytest.mark.parametrize(
    "argv, said",
    [
        ((), "COMMAND"),
        (("nope",), "invalid choice: 'nope'"),
        (("promote",), "DTYPE"),
        (("promote", "flot32", "int8"), "'flot32'; near it are float32"),
        (("promote", "int8", "--rules", "max_stric"), "'max_stric'; there is max_strict"),
        (("promote", "int8", "[1]"), "no dtype is named '[1]'"),
        (("promote", "int8", "__import__('os').getpid()"), "no dtype is named"),
        (("table", "--format", "pdf"), "invalid choice: 'pdf'"),
        (("table", "--rules", "nope"), "no rule set is named 'nope'"),
        (("lattice", "extra"), "unrecognized arguments: extra"),
        (("casts", "x.gir", "--kind", "all"), "invalid choice: 'all'"),
        (("run", "x.gir", "--input", "x"), "NAME=VALUE"),
        (("run", "x.gir", "--input", "=3"), "NAME=VALUE"),
    ],
)
def test_bad_usage_is_status_2_and_one_line(refused, argv, said):
    assert said in refused(2, *argv)


# -- promote


def test_promote_gives_the_dtype_and_the_path(cli):
    status, out, err = cli("promote", "int16", "float32")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "int16 and float32 promote to float32 under 'max'"
    assert "int16 -> int32 -> int64 -> float16 -> bfloat16 -> float32: exact" in out


def test_promote_names_what_is_lost(cli):
    assert "bfloat16: loses values, the simplest is 257" in cli("promote", "int32", "bfloat16")[1]


def test_promote_takes_many_operands_and_short_names(cli):
    assert "promote to bfloat16" in cli("promote", "i8", "uint8", "bf16", "half")[1]


@pytest.mark.parametrize(
    "argv, result",
    [
        (("int8", "1"), "int8"),
        (("int8", "-1"), "int8"),
        (("int8", "0x7f"), "int8"),
        (("float32", "2.5"), "float32"),
        (("float32", "1e3"), "float32"),
        (("bool", "True"), "bool"),
        (("--rules", "python", "bool", "1"), "weak_int"),
        (("--rules", "python", "1", "2.5"), "weak_float"),
        (("--rules", "python", "weak_int", "1j"), "weak_complex"),
        (("--rules", "python", "--", "weak_int", "-1e3"), "weak_float"),
    ],
)
def test_promote_takes_python_numbers(cli, argv, result):
    status, out, err = cli("promote", *argv)
    assert (status, err) == (0, "")
    assert f"promote to {result} under" in out


@pytest.mark.parametrize(
    "argv, said",
    [
        (("int8", "300"), "the literal 300 does not fit int8"),
        (("int8", "1j"), "the literal 1j does not fit int8"),
        (("int8", "2.5"), "the literal 2.5 does not fit int8"),
        (("1", "2"), "the literal 1 has no dtype of its own"),
        (("int8", "complex64"), "int8 and complex64 do not promote under 'max'"),
        (("int32", "bfloat16", "--rules", "max_strict"), "does not hold 257 of int32"),
    ],
)
def test_promote_refuses_with_status_1(refused, argv, said):
    assert said in refused(1, "promote", *argv)


@pytest.mark.parametrize(
    "text, value",
    [
        *(("1", 1), ("-3", -3), ("0x10", 16), ("1_000", 1000), ("010", 10), ("2.5", 2.5)),
        *(("inf", float("inf")), ("1j", 1j), ("1+2j", 1 + 2j), ("True", True), ("False", False)),
        *(("", None), ("x", None), ("1+1", None), ("[1]", None), ("none", None)),
    ],
)
def test_numbers_are_parsed_as_python_spells_them(text, value):
    found = number(text)
    assert found == value
    assert type(found) is type(value)


# -- table


def test_every_format_of_every_rule_set(cli):
    for each in graphir.rule_sets():
        for kind in FORMATS:
            status, out, err = cli("table", "--rules", each.name, "--format", kind)
            assert (status, err) == (0, "")
            assert len(out.splitlines()) > len(each.dtypes)


def test_table_as_json_is_the_table(cli):
    found = json.loads(cli("table", "--rules", "max_strict", "--format", "json")[1])
    assert found["rules"] == "max_strict"
    assert found["table"]["int16"]["float32"] == "float32"
    assert found["table"]["int32"]["bfloat16"] is None
    expected = rules("max_strict").table()
    assert found["table"] == {
        str(a): {str(b): None if to is None else str(to) for b, to in row.items()}
        for a, row in expected.items()
    }
    assert found["dtypes"] == [str(d) for d in DType if d in expected]


def test_table_as_csv_is_the_table(cli):
    rows = list(
        csv.reader(io.StringIO(cli("table", "--rules", "max_strict", "--format", "csv")[1]))
    )
    columns = rows[0][1:]
    cells = {
        (row[0], b): cell for row in rows[1:] for b, cell in zip(columns, row[1:], strict=True)
    }
    assert cells["int16", "float32"] == "float32"
    assert cells["int32", "bfloat16"] == "-"
    assert len(cells) == len(rules("max_strict").dtypes) ** 2


def test_table_as_text_is_aligned(cli):
    lines = cli("table")[1].splitlines()
    assert lines[0].split() == [d.short for d in DType if d in rules("max").lattice]
    at = lines[0].index("bf16")
    row = next(line for line in lines if line.startswith("i16 "))
    assert row[at : at + 4] == "bf16"


def test_table_as_markdown(cli):
    lines = cli("table", "--format", "markdown")[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {len(row) for row in cells} == {17}
    assert set(cells[1]) == {"---"}
    row = next(row for row in cells if row[0] == "**int16**")
    assert row[cells[0].index("float32")] == "float32"


class Cells(HTMLParser):
    """Collects the cells of a page, and checks that every tag is closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.cells, self.tags = [], [], set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ("meta",):
            self.open.append(tag)
        if tag == "td":
            self.cells.append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_table_as_html_is_one_page_that_shows_what_is_lost(cli):
    page = cli("table", "--rules", "max_strict", "--format", "html")[1]
    assert page.startswith("<!DOCTYPE html>")
    assert "http" not in page and "<script" not in page and "<link" not in page
    found = Cells(page)
    titles = {cell["title"]: cell["class"] for cell in found.cells}
    assert len(titles) == len(rules("max_strict").dtypes) ** 2
    assert titles["int16 with float32: float32; exact"] == "exact"
    assert titles["int32 with bfloat16: an error"] == "raises"
    page = cli("table", "--rules", "max", "--format", "html")[1]
    titles = {cell["title"]: cell["class"] for cell in Cells(page).cells}
    assert titles["int32 with bfloat16: bfloat16; int32 loses 257"] == "loses"
    assert titles["uint64 with int64: float16; uint64 loses 2049 and int64 loses 2049"] == "loses"


# -- lattice


def test_lattice_as_text_lists_levels_from_below(cli):
    lines = cli("lattice")[1].splitlines()
    assert "16 nodes, 19 edges, 10 levels" in lines[0]
    assert any(line.split() == ["level", "2", "int16", "->", "int32"] for line in lines)
    assert lines[-1].split() == ["level", "9", "float64", "(top)"]


def test_levels_put_every_node_above_what_lies_below_it():
    for each in graphir.rule_sets():
        if each.lattice is not None:
            height = {d: i for i, layer in enumerate(levels(each.lattice)) for d in layer}
            assert set(height) == set(each.lattice.nodes)
            for low, above in each.lattice.edges.items():
                assert all(height[low] < height[high] for high in above)


def test_lattice_as_dot_and_mermaid_has_every_edge(cli):
    dot = cli("lattice", "--format", "dot")[1]
    assert dot.startswith('digraph "max" {') and dot.rstrip().endswith("}")
    assert '"int16" -> "int32";' in dot and dot.count(" -> ") == 19
    mermaid = cli("lattice", "--format", "mermaid")[1]
    assert mermaid.startswith("flowchart BT\n") and mermaid.count(" --> ") == 19
    assert '["bfloat16"]' in mermaid


def test_names_are_quoted_in_dot():
    assert r'"a\"b" -> "c d";' in lattice_dot(Lattice("odd", {'a"b': ["c d"]}))


def test_rules_without_a_lattice_say_so(refused):
    assert "rule set 'explicit' has no lattice" in refused(1, "lattice", "--rules", "explicit")


# -- rules, demo


def test_rules_lists_every_rule_set_with_its_source(cli):
    out = cli("rules")[1]
    for each in graphir.rule_sets():
        line = next(line for line in out.splitlines() if line.split()[0] == each.name)
        assert each.doc in line and each.source in line


def test_demo_answers_the_question(cli):
    status, out, err = cli("demo")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 120
    assert "int16 and float32 promote to float32 under 'max'" in out
    assert "{to=float32} : float32[] because(lhs of add" in out
    assert "float16 has 257, bfloat16 has not" in out
    assert "max_strict" in out and str(ROOT) not in out


def test_demo_names_the_lines_it_shows(cli):
    out = cli("demo")[1]
    source = (ROOT / "runtime" / "demo.py").read_text(encoding="utf-8").splitlines()
    shown = dict(line.split(" | ", 1) for line in out.splitlines() if " | " in line)
    for text, line in shown.items():
        assert source[int(text) - 1].rstrip() == line.rstrip()
    [add] = {
        line.split('"demo.py":')[1].split(":")[0] for line in out.splitlines() if "add(" in line
    }
    assert "x + y" in source[int(add) - 1]


def test_demo_labels_most_digits_as_the_float32_network_does(cli):
    last = cli("demo")[1].splitlines()[-3:]
    accuracy = [float(line.split()[-1].rstrip("%")) for line in last]
    assert all(90 < percent <= 100 for percent in accuracy)
    assert abs(accuracy[0] - accuracy[1]) < 2


# -- lower, casts


def test_lower_prints_text_that_parses(cli, mixed):
    status, out, err = cli("lower", mixed)
    assert (status, err) == (0, "")
    assert str(Graph.parse(out)) == out.rstrip("\n")
    assert "because(lhs of add" in out and "max: int16 -> float32" in out


def test_lower_saves_large_constants_with_the_text(cli, tmp_path):
    g = Graph("large")
    g.output(g.input("float32", (100,), name="x") + g.constant(np.arange(100, dtype=np.int16)))
    g.save(tmp_path / "large.gir")
    status, out, err = cli("lower", tmp_path / "large.gir")
    assert status == 0 and 'npz("' in out
    assert "--output" in err and err.count("\n") == 1
    assert cli("lower", tmp_path / "large.gir", "--output", tmp_path / "low.gir") == (0, "", "")
    assert str(Graph.load(tmp_path / "low.gir")) == out.rstrip("\n")


def test_casts_of_each_kind(cli, mixed):
    out = cli("casts", mixed)[1]
    assert "lhs of add  int16  float32" in out.replace("  int16   ", "  int16  ")
    assert "test_cli.py:" in out

    def kinds(*argv):
        found = json.loads(cli("casts", mixed, "--format", "json", *argv)[1])
        return [(row["kind"], row["from"], row["to"]) for row in found["casts"]]

    exact, lossy = ("implicit", "int16", "float32"), ("implicit", "int16", "bfloat16")
    explicit = ("explicit", "int16", "int8")
    assert kinds() == [exact, lossy, explicit]
    assert kinds("--kind", "implicit") == [exact, lossy]
    assert kinds("--kind", "explicit") == [explicit]
    assert kinds("--lossy") == [lossy, explicit]
    assert kinds("--kind", "implicit", "--lossy") == [lossy]
    assert ("legalization", "float32", "bfloat16") in kinds("--kind", "legalization")


# -- run


def test_run_prints_outputs(cli, mixed, tmp_path):
    np.savez(tmp_path / "w.npz", w=np.array([1, 2, 257], ml_dtypes.bfloat16))
    status, out, err = cli(
        *("run", mixed, "--input", f"x={tmp_path / 'x.npy'}", "--input", "y=0.5"),
        *("--input", f"w={tmp_path / 'w.npz'}"),
    )
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        *("output0: float32[3]", "[  1.5   2.5 300.5]"),
        *("output1: bfloat16[3]", "[2 4 556]"),
        *("output2: int8[3]", "[  1   2 127]"),
    ]


def test_run_saves_outputs_and_reads_them_again(cli, mixed, tmp_path):
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
def test_dtypes_that_npz_cannot_name_come_back(cli, tmp_path, dtype):
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
        ("3", "input 'x' of graph 'mixed' is int16[n], not the number 3"),
        ("two.npz:a", "the array is float64"),
    ],
)
def test_bad_inputs_are_named(refused, mixed, tmp_path, monkeypatch, value, said):
    monkeypatch.chdir(tmp_path)
    for name in ("corrupt.npy", "corrupt.npz"):
        Path(name).write_bytes(b"PK\x03\x04 no archive" if name.endswith("z") else b"\x93NUMPY\x09")
    np.savez("two.npz", a=np.zeros(3), b=np.zeros(3))
    Path("cut.npz").write_bytes(Path("two.npz").read_bytes()[:200])
    Path("cut.npy").write_bytes(Path("x.npy").read_bytes()[:-1])
    np.save("object.npy", np.array([None]), allow_pickle=True)
    np.save("w.npy", np.zeros(3, ml_dtypes.bfloat16))
    others = ("--input", "y=1", "--input", "w=w.npy")
    assert said in refused(1, "run", mixed, "--input", f"x={value}", *others)


def test_a_missing_or_unknown_input_is_named(refused, mixed):
    assert "missing x, y, w" in refused(1, "run", mixed)
    assert "has no input 'z'" in refused(1, "run", mixed, "--input", "z=1")


def test_an_output_that_cannot_be_written_is_named(refused, tmp_path):
    g = Graph("one")
    g.output(g.scalar[DType.int8](1))
    g.save(tmp_path / "one.gir")
    argv = ("run", tmp_path / "one.gir", "--output", tmp_path / "no" / "out.npz")
    assert "No such file or directory" in refused(1, *argv)


@pytest.mark.parametrize("command", ["lower", "casts", "run"])
def test_bad_graphs_are_named(refused, tmp_path, command):
    bad = tmp_path / "bad.gir"
    assert "bad.gir: No such file or directory" in refused(1, command, bad)
    bad.write_text("graph @g rules=max () -> (int8[]) {\n  %0 = nope() : int8[]\n  return %0\n}\n")
    message = refused(1, command, bad)
    assert "line 2, column 8" in message and "bad.gir" in message and "nope" in message
    bad.write_text("graph @g rules=mx () -> () {\n}\n")
    assert "line 1, column 16" in refused(1, command, bad)
    bad.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in refused(1, command, bad)


def test_a_graph_without_outputs_does_not_run(refused, tmp_path):
    (tmp_path / "none.gir").write_text("graph @none rules=max () -> () {\n}\n")
    assert "has no outputs" in refused(1, "run", tmp_path / "none.gir")


# -- as a process


def test_the_module_runs_as_a_program(tmp_path):
    done = process("promote", "int16", "float32")
    assert done.stdout.startswith("int16 and float32 promote to float32 under 'max'\n")
    assert done.stderr == ""
    done = process("promote", "int8", "flot32", code=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1
    done = process("casts", tmp_path / "missing.gir", code=1)
    assert done.stdout == "" and "Traceback" not in done.stderr and done.stderr.count("\n") == 1


def test_the_demo_prints_the_same_text_every_time():
    assert process("demo").stdout == process("demo").stdout


def test_a_reader_that_stops_early_is_no_error():
    writer = subprocess.Popen(
        [sys.executable, "-u", "-m", "graphir", "table", "--rules", "explicit", "--format", "html"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert writer.stdout is not None and writer.stderr is not None
    writer.stdout.read(10)
    writer.stdout.close()
    err = writer.stderr.read()
    writer.stderr.close()
    assert (writer.wait(60), err) == (0, b"")
