"""What a command imports before it answers, and what the prompt says: words, completion, Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import graphir
from graphir.drawing.formats import GRAPH_FORMATS, LATTICE_FORMATS
from graphir.loss import LOSS_KINDS
from graphir.passes.analysis.casts import Kind, StepLoss
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.annotated import ANNOTATED_FORMATS
from graphir.rule_reports.laws import LAWS
from graphir.rule_reports.tables import FORMATS
from graphir.runtime.cli import graphs_and_casts, main
from graphir.runtime.program.tier import Mode
from graphir.runtime.sources.libraries import LIBRARIES
from tests.support.commands import cli, refused

ROOT = Path(__file__).resolve().parents[3]
IMPORTED = """
import sys
{code}
ours = [x for x in sys.modules if x.startswith("graphir.")]
others = [x for x in ("numpy", "ml_dtypes", "networkx", "llvmlite") if x in sys.modules]
print("imports", len(ours), *others, *(x for x in {asked} if x in sys.modules))
"""


def imports(code: str, *asked: str) -> tuple[int, list[str]]:
    """The number of modules of ours that code imports, and which of some others."""
    argv = [sys.executable, "-c", IMPORTED.format(code=code, asked=asked)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    _, count, *names = done.stdout.splitlines()[-1].split()
    return int(count), names


RUN = "from graphir.runtime.cli.main import main\n"


def test_help_version_and_misspelt_commands_import_nothing_that_commands_do() -> None:
    argvs = [[], ["--help"], ["--version"], ["promte"], *([x, "--help"] for x in NAMES)]
    count, others = imports(RUN + "\n".join(f"main({argv})" for argv in argvs))
    assert (count, others) == (5, [])


def test_an_answer_about_dtypes_imports_no_graph() -> None:
    count, others = imports(RUN + "main(['promote', 'int16', 'float32'])", "graphir.drawing.svg")
    assert count <= 70 and others == ["numpy", "ml_dtypes"]


RECORD = """
import numpy as np
from graphir.runtime import record
record(lambda x: x * 2, np.ones(3))
print()
"""
UNUSED = "passes.reports.sentences", "runtime.audit.audit", "runtime.program.program"


def test_a_recording_imports_no_audit_and_no_planner() -> None:
    count, others = imports(RECORD, *(f"graphir.{x}" for x in UNUSED))
    assert count <= 145 and others == ["numpy", "ml_dtypes"]


def test_the_parser_offers_the_choices_that_commands_have() -> None:
    assert {*FORMATS, "svg"} == {*main.TABLE_FORMATS}
    assert (*LATTICE_FORMATS,) == main.LATTICE_FORMATS
    assert (*GRAPH_FORMATS,) == main.GRAPH_FORMATS
    assert (*REPORT_FORMATS,) == main.REPORT_FORMATS
    assert (*ANNOTATED_FORMATS,) == main.ANNOTATED_FORMATS
    assert (*graphs_and_casts.WRITERS,) == main.TARGETS
    assert (*LAWS,) == main.LAWS and LOSS_KINDS == main.LOSSES and LIBRARIES == main.LIBRARIES
    assert (*get_args(Kind), *get_args(StepLoss)) == main.KINDS and get_args(Mode) == main.NATIVE


# -- words


NAMES = [*main.parsers()[1]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fit.py").write_text("def main(x):\n    return x\n\nclass Net:\n    depth = 2\n")
    (tmp_path / "model.gir").touch()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "fit.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "word, said",
    [
        ("promte", "no command is named 'promte'; use promote"),
        ("fit.py", "fit.py is a file, no command; type: graphir audit fit.py"),
        ("model.gir", "model.gir is a file, no command; type: graphir casts model.gir"),
        ("fit.py:main", "fit.py:main is a program, no command; type: graphir casts fit.py:main"),
        ("fit.py::main", "type: graphir casts fit.py:main"),
        ("fit:main", "type: graphir casts fit:main"),
        ("tools", "tools is a folder, no command; type: graphir audit tools/fit.py"),
        ("package/", "type: python -m pytest --casts=package, which reports its casts in tests"),
    ],
)
def test_a_word_that_is_no_command_names_what_to_type(word: str, said: str) -> None:
    assert refused(2, word).startswith("graphir: ") and said in refused(2, word)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "program, said",
    [
        ("fit.py:mian", "fit.py defines no 'mian'; use fit.py:main"),
        ("fit.py:Net.dept", "fit.py defines no 'dept'; use fit.py:Net.depth"),
        ("fit.py:zzz", "fit.py defines no 'zzz'; it has Net, main"),
        ("fit.py::Net::main", "one colon stands before a name; type fit.py:Net.main"),
    ],
)
def test_a_misspelt_program_is_corrected(program: str, said: str) -> None:
    assert said in refused(3, "casts", program)


def test_no_arguments_print_the_help_with_the_status_of_bad_usage() -> None:
    status, out, err = cli()
    assert (status, out) == (2, "") and err == cli("--help")[1]


# -- completion


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last of some words, as it calls a function at a Tab."""
    line = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}\nPATH=; _graphir"
    code += '\necho "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_without_another_process() -> None:
    script = cli("completion", "bash")[1]
    assert completed(script, "graphir", "") == [*NAMES, "--help", "--version"]
    assert completed(script, "graphir", "pr") == ["promote"]
    assert completed(script, "graphir", "casts", "--fo") == ["--format"]
    assert completed(script, "graphir", "casts", "--format", "") == [*REPORT_FORMATS]
    assert completed(script, "graphir", "audit", "--format", "=", "ht") == ["html"]
    assert completed(script, "graphir", "casts", "x.gir", "--against", "jax_s") == ["jax_strict"]
    assert completed(script, "graphir", "promote", "int16", "bf") == ["bfloat16"]
    assert completed(script, "graphir", "diff", "numpy_") == ["numpy_legacy"]
    assert completed(script, "graphir", "casts", "") == []  # bash completes files


@pytest.mark.parametrize("shell", main.SHELLS)
def test_a_script_has_every_command_option_and_rule_set(shell: str) -> None:
    script = cli("completion", shell)[1]
    words = {*script.replace('"', " ").replace("=", " ").replace("|", " ").split()}
    options = {
        x.strip("-") if shell == "fish" else x
        for parser in main.parsers()[1].values()
        for x in parser.format_help().replace(",", " ").replace("]", " ").split()
        if x.startswith("--") and x.strip("-")
    }
    assert {*NAMES, *(x.name for x in graphir.rule_sets())} <= words
    assert {x for x in options if x.strip("-").replace("-", "").isalpha()} <= words
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


# -- Ctrl-C, and letters that a terminal lacks

INTERRUPTED = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["graphir", "promote", "int8", "int16"]
runpy.run_module("graphir", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    "name", ["graphir.runtime", "graphir.runtime.cli.main", "numpy", "graphir.promotion.max"]
)
def test_ctrl_c_during_imports_prints_nothing(name: str) -> None:
    argv = [sys.executable, "-c", INTERRUPTED.format(name=name)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_after_the_answer_prints_nothing() -> None:
    code = (
        "import atexit, os, signal, sys\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['graphir', '--version']\n"
        "from graphir.__main__ import main\nsys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize("setting", ["PYTHONIOENCODING=ascii", "PYTHONIOENCODING=ascii:strict"])
def test_letters_that_a_stream_lacks_are_escaped(setting: str, tmp_path: Path) -> None:
    text = "def gr\xf6\xdfe(x):\n    return x * 0.5\n"
    (tmp_path / "\u03b1.py").write_text(text, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C", **dict([setting.split("=")])}
    for name, status in (("gr\xf6\xdfe", 0), ("gr\xf6ss", 3)):
        argv = [sys.executable, "-m", "graphir", "casts", f"\u03b1.py:{name}"]
        argv += ["--input", "float32[2]"]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert done.returncode == status
        assert b"gr\\xf6\\xdfe" in done.stdout + done.stderr
