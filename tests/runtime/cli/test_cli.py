"""The command line: usage, promote, rules, demo, and the program as a process."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import graphir
from graphir.promotion.scalars import number
from tests.support import forks
from tests.support.commands import cli, refused
from tests.support.tables import every

ROOT = Path(graphir.__file__).parent.parent
COMMANDS = [
    *("demo", "rules", "promote", "table", "lattice", "laws", "diff", "lower", "casts", "run"),
    "plan",
]


def process(*argv, code=0, python=sys.executable, **kwargs):
    """Run the command line as a program, in an interpreter of its own or `forks.executable()`."""
    done = subprocess.run(
        [python, "-m", "graphir", *map(str, argv)],
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


@every("command", COMMANDS)
def test_help_of_each_command_has_an_example(command):
    status, out, err = cli(command, "--help")
    assert (status, err) == (0, "")
    assert f"example: graphir {command}" in out


def test_help_lists_every_command():
    status, out, _ = cli("--help")
    assert status == 0
    assert all(f"    {command} " in out for command in COMMANDS)
    assert "example: graphir " in out


def test_version():
    status, out, _ = cli("--version")
    assert status == 0
    assert out.startswith("graphir")


@every(
    "argv, said",
    [
        (("promte",), "no command is named 'promte'; use promote\n"),
        (("nope",), "named 'nope'; see graphir --help"),
        (("promote",), "DTYPE"),
        (("promote", "flot32", "int8"), "'flot32'; near it are float32"),
        (("promote", "int8", "--rules", "max_stric"), "'max_stric'; use max_strict"),
        (("promote", "int8", "[1]"), "no dtype is named '[1]'"),
        (("promote", "int8", "__import__('os').getpid()"), "no dtype is named"),
        (("table", "--format", "pdf"), "invalid choice: 'pdf'"),
        (("table", "--rules", "nope"), "no rule set is named 'nope'"),
        (("promote", "int8", "--format", "json"), "unrecognized arguments: --format json"),
        (("lattice", "max", "extra"), "unrecognized arguments: extra"),
        (("casts", "x.gir", "--kind", "all"), "invalid choice: 'all'"),
        (("run", ""), "'' names no file"),
        (("lower", "x.gir", "--output", ""), "'' names no file"),
        (("diff", "", "max"), "no rule set is named ''"),
    ],
)
def test_bad_usage_is_status_2_and_one_line(argv, said):
    assert said in refused(2, *argv)


# -- promote


def test_promote_gives_the_dtype_and_the_path():
    status, out, err = cli("promote", "int16", "float32")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "int16 and float32 promote to float32 under 'max'"
    assert "int16 -> int32 -> int64 -> float16 -> bfloat16 -> float32: exact" in out


def test_promote_names_what_is_lost():
    assert "bfloat16: loses values, the simplest is 257" in cli("promote", "int32", "bfloat16")[1]


def test_promote_takes_many_operands_and_short_names():
    assert "promote to bfloat16" in cli("promote", "i16", "uint8", "bf16", "half")[1]


@every(
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
def test_promote_takes_python_numbers(argv, result):
    status, out, err = cli("promote", *argv)
    assert (status, err) == (0, "")
    assert f"promote to {result} under" in out


@every(
    "argv, said",
    [
        (("int8", "300"), "the literal 300 does not fit int8"),
        (("int8", "1j"), "the literal 1j does not fit int8"),
        (("int8", "2.5"), "the literal 2.5 does not fit int8"),
        (("1", "2"), "the literal 1 has no dtype of its own"),
        (("int8", "complex64"), "int8 and complex64 do not promote under 'max'"),
        (("int32", "bfloat16", "--rules", "max_strict"), "does not hold 16777217 of int32"),
    ],
)
def test_promote_refuses_with_status_3(argv, said):
    assert said in refused(3, "promote", *argv)


@every(
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


# -- rules, demo


def test_rules_lists_every_rule_set_with_its_source():
    out = cli("rules")[1]
    for each in graphir.rule_sets():
        line = next(line for line in out.splitlines() if line.split()[0] == each.name)
        assert each.doc in line and each.source in line


def test_demo_answers_which_line_in_30_lines() -> None:
    status, out, err = cli("demo")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 30 and "the result is float64 because line 4 promotes" in lines[9]
    assert '  write: depth.astype("float32") * np.float32(0.01)' in lines[10]
    assert "  float32 under max jax " in out and str(ROOT) not in out


def test_demo_of_a_graph_answers_the_question() -> None:
    status, out, err = cli("demo", "--graph")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 120
    assert "int16 and float32 promote to float32 under 'max'" in out
    assert "{to=float32} : float32[] because(lhs of add" in out
    assert "max_strict" in out and str(ROOT) not in out


def test_demo_of_a_graph_names_the_lines_it_shows() -> None:
    out = cli("demo", "--graph")[1]
    path = ROOT / "runtime" / "cli" / "demo_and_doctor.py"
    source = path.read_text(encoding="utf-8").splitlines()
    shown = dict(line.split(" | ", 1) for line in out.splitlines() if " | " in line)
    for text, line in shown.items():
        assert source[int(text) - 1].rstrip() == line.rstrip()
    [add] = {
        line.split('"demo.py":')[1].split(":")[0] for line in out.splitlines() if "add(" in line
    }
    assert "x + y" in source[int(add) - 1]


# -- as a process


def test_the_module_runs_as_a_program(tmp_path):
    done = process("promote", "int16", "float32")
    assert done.stdout.startswith("int16 and float32 promote to float32 under 'max'\n")
    assert done.stderr == ""
    done = process("promote", "int8", "flot32", code=2, python=forks.executable())
    assert done.stdout == "" and done.stderr.count("\n") == 1
    done = process("casts", tmp_path / "missing.gir", code=3, python=forks.executable())
    assert done.stdout == "" and "Traceback" not in done.stderr and done.stderr.count("\n") == 1


def test_the_demo_prints_the_same_text_every_time():
    assert process("demo").stdout == cli("demo")[1]


def test_a_reader_that_stops_early_is_no_error():
    writer = subprocess.Popen(
        [sys.executable, "-u", "-m", "graphir", "table", "--rules", "explicit", "--format", "svg"],
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


def test_a_stdout_that_is_closed_or_has_not_the_letters_is_no_traceback(tmp_path):
    command = f"{shlex.quote(sys.executable)} -m graphir table >&-"
    done = subprocess.run(command, shell=True, capture_output=True, cwd=ROOT, check=True)
    assert done.stderr == b""
    graphir.Graph("\u03b1").save(tmp_path / "alpha.gir")
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert "\\u03b1" in process("lower", tmp_path / "alpha.gir", env=env).stdout
