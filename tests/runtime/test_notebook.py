"""The magics of notebooks: the cell's own results, its report, and errors as a user reads them."""

from __future__ import annotations

import inspect
import linecache
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphir
from graphir import Graph, PromotionError
from graphir.passes import Annotated, CastReport
from graphir.runtime.recording.values import active
from tests.support.notebooks import Notebook, Outputs, UsageError, notebook_shell


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    shell = notebook_shell(monkeypatch)
    shell.run("%load_ext graphir")
    shell.run(
        "import numpy as np\n"
        "x = np.linspace(50, 60, 5).astype(np.float32)\n"
        "w = np.arange(5)\n"
        "def centre(x):\n    return x - x.mean()\n"
    )
    yield shell
    graphir.unload_ipython_extension(shell)


def places(outputs: Outputs) -> set[str]:
    assert isinstance(outputs.result, CastReport)
    return {str(row.location) for row in outputs.result}


COMPLETIONS = """
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext graphir")
shell.run_cell("import graphir; from graphir import *; g, jax = Graph('g'), rules('jax')")
shell.run_cell("register(PromotionRules('jagged', 'A lattice.', lattice('max')))")
completer = shell.Completer

def completions(text):
    with provisionalcompleter():
        return {each.text.strip(".") for each in completer.completions(text, len(text))}

for completer.use_jedi in (True, False):
    options = {f"jep_option_{i}" for i in range(4)}
    names = {"jagged", "jax", "jax_2020", "jax_lax", "jax_strict", "jax_x32", *options}
    assert completions('Graph("g", rules="j') == names
    assert completions("graphir.rules('jax_l") == {"jax_lax"}
    assert completions('x.astype("bf') == completions('f(dtype="bf') == {"bfloat16"}
    assert "bfloat16" not in completions('f(kind="bf')
    for name, least in (("g", {"input", "output"}), ("jax", {"promote", "name"})):
        names = completions(f"{name}.")
        assert least <= names and len(names) <= 40 and names <= {*dir(shell.user_ns[name])}
shell.run_cell("%unload_ext graphir")
assert completer.custom_matchers == []
print("all")
"""


def test_ipython_completes_names_and_public_attributes(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    run = subprocess.run(
        [sys.executable, "-c", COMPLETIONS],
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.endswith("all\n"), run.stdout + run.stderr


CELL = """%%audit
def weighted(x):
    return centre(x) * w

total = np.zeros(len(x), np.float16)
total += weighted(x)
result = total / np.float64(3)
print("sum", total.sum())
result[1:3]
"""


def test_a_cell_runs_as_written_and_is_reported(notebook: Notebook) -> None:
    outputs = notebook.run(CELL)
    assert outputs.stdout == "sum 25.0\n" and outputs.stderr == ""
    [shown] = outputs.displays
    assert type(shown) is np.ndarray and shown.tolist() == [-2.5 / 3, 0.0]
    report = outputs.result
    assert "\ngraph In[3]: 5 uses of casts" in str(report)
    assert report.sentences[0].startswith(
        "result and value of line 9 are float64 because line 7 of In[3] divides by"
    )
    assert {"In[3]:3:12", "In[3]:6:1", "In[3]:7:10"} <= places(outputs)
    assert {output.name for output in report.outputs} >= {"result", "total", "text of line 8"}


def test_variables_are_those_of_a_plain_run(notebook: Notebook) -> None:
    plain = notebook_of(CELL.partition("\n")[2])
    before = notebook.user_ns["x"]
    notebook.run(CELL)
    names = notebook.user_ns
    assert names["x"] is before and active() is None
    assert names.keys() == plain.keys()
    for name in ("total", "result", "w"):
        assert type(names[name]) is np.ndarray and names[name].dtype == plain[name].dtype
        assert names[name].tolist() == plain[name].tolist()
    weighted = names["weighted"]
    assert weighted.__code__.co_names == plain["weighted"].__code__.co_names == ("centre", "w")
    assert inspect.getsource(weighted) == "def weighted(x):\n    return centre(x) * w\n"
    assert weighted(before).dtype == np.float64


def notebook_of(cell: str) -> dict[str, Any]:
    """The variables after a cell without a magic."""
    shell = Notebook()
    setup = "import numpy as np\nx = np.linspace(50, 60, 5).astype(np.float32)\nw = np.arange(5)\n"
    shell.run(setup + "def centre(x):\n    return x - x.mean()\n")
    shell.run(cell)
    return shell.user_ns


def test_arrays_are_changed_in_place(notebook: Notebook) -> None:
    array = notebook.user_ns["x"]
    outputs = notebook.run("%%audit\nx += w\nx[0] = 7.1\n")
    assert notebook.user_ns["x"] is array and array[0] == np.float32(7.1)
    kinds = {row.kind for row in outputs.result}
    assert "assignment" in kinds and places(outputs) >= {"In[3]:2:1", "In[3]:3:1"}


def test_a_function_of_the_cell_in_containers_and_classes_keeps_its_code(
    notebook: Notebook,
) -> None:
    notebook.run(
        "%%casts\n"
        "class Model:\n"
        "    def half(self, x):\n        return np.float16(x.sum())\n"
        "handlers = {'f': lambda x: np.float16(x.sum())}\n"
        "y = Model().half(x) + handlers['f'](x)\n"
    )
    functions = notebook.user_ns["Model"].half, notebook.user_ns["handlers"]["f"]
    for function in functions:
        assert function.__code__.co_names == ("np", "float16", "sum")


def test_scalar_types_in_a_cell_are_casts(notebook: Notebook) -> None:
    report = notebook.run("%%casts\ny = np.float16(x.sum())\n").result
    assert [(row.kind, str(row.target)) for row in report] == [("explicit", "float16")]


def test_scalar_types_in_functions_of_earlier_cells_are_casts(notebook: Notebook) -> None:
    notebook.run("import numpy as np\ndef half(x):\n    return np.float16(x.sum())\n")
    outputs = notebook.run("%%casts\nhalf(x)\n")
    assert places(outputs) == {"In[3]:3:12"}
    assert notebook.user_ns["half"].__code__.co_names == ("np", "float16", "sum")


def test_options_are_those_of_the_command_line(notebook: Notebook, tmp_path: Path) -> None:
    report = notebook.run("%%audit --as-dtype bfloat16 --lossy\ny = centre(x) * w\n").result
    assert {str(row.target) for row in report} == {"bfloat16"} and not any(x.exact for x in report)
    report = notebook.run("%%casts --against jax --kind implicit\ny = x * w\n").result
    assert report.against.after.name == "jax"
    table = notebook.run("%%audit --as-dtype bfloat16,float16\ny = centre(x) * w\n")
    assert table.result is None and "bfloat16          float16" in table.stdout
    file = tmp_path / "with spaces.md"
    notebook.run(f"%%audit -o '{file}'\ny = x * w\n")
    assert file.read_text().startswith("### Casts of `In[6]`")


def test_the_value_of_a_cell_with_a_semicolon_is_not_shown(notebook: Notebook) -> None:
    assert notebook.run("%%casts\nx * w;\n").displays == []
    assert len(notebook.run("%%casts\nx * w\n").displays) == 1


def test_blank_lines_count(notebook: Notebook) -> None:
    assert places(notebook.run("%%casts\n\n\ny = x * w\n")) == {"In[3]:4:5"}


def test_a_graph_has_a_report(notebook: Notebook) -> None:
    cell = (
        "from graphir import Graph\ng = Graph('g')\ng.output(g.input('int8') * g.input('uint8'))\n"
    )
    assert notebook.run(f"%%casts\n{cell}g\n").result.graph.name == "g"
    with pytest.raises(UsageError, match=r"^audit: a graph runs on inputs; got <Graph g.*; write"):
        notebook.run("%%audit\ng\n")


USAGE = {
    "%%audit --rules nonsense\nx": r"^%%audit: argument --rules: no rule set is named 'nonsense'",
    "%%audit --loss much\nx": r"argument --loss: invalid choice: 'much'(.|\n)*\nusage: %%audit",
    "%%casts --as-dtype float16\nx": r"^%%casts: unrecognized arguments: --as-dtype float16",
    "%%audit 'open\nx": "^No closing quotation",
    "%%audit --bogus\nx": r"^%%audit: unrecognized arguments: --bogus",
    "%%audit --as-dtype float99\nx * w": "^no dtype",
    "%%audit --rules jax\nx * w": r"^a recording tells what NumPy did",
    "%%audit\ny = 'text'": "^audit: NumPy computed no array or number from arrays here",
    "%%audit -o report.xyz\nx * w": r"no format of this command has the ending '\.xyz'",
}


@pytest.mark.parametrize("cell", USAGE)
def test_wrong_arguments_are_told_without_a_traceback(notebook: Notebook, cell: str) -> None:
    with pytest.raises(UsageError, match=USAGE[cell]):
        notebook.run(f"{cell}\n")
    assert active() is None


@pytest.mark.parametrize("line", ["%%audit -h\nx", "%%casts --help\nx"])
def test_help_is_printed(notebook: Notebook, line: str) -> None:
    outputs = notebook.run(f"{line}\n")
    assert outputs.stdout.startswith("usage: %") and "--against RULES" in outputs.stdout


def test_an_error_of_the_cell_has_the_frames_of_the_user(notebook: Notebook) -> None:
    with pytest.raises(IndexError) as info:
        notebook.run("%%audit\nz = x * 2\nz[7]\n")
    lines = [frame.lineno for frame in traceback.extract_tb(info.value.__traceback__)]
    files = [frame.filename for frame in traceback.extract_tb(info.value.__traceback__)]
    assert lines[-1] == 3 and "ipykernel" in files[-1] and files[-1] != files[-2]
    assert not any("runtime/recording" in file for file in files)
    z = notebook.user_ns["z"]
    assert type(z) is np.ndarray and type(notebook.user_ns["x"]) is np.ndarray
    with pytest.raises(PromotionError, match=r"^In\[4\]:3:1: multiply"):
        notebook.run(
            "%%audit\nfrom graphir import Graph; g = Graph('g', rules='max_strict')\n"
            "g.input('int16') * g.input('float16')\n"
        )
    with pytest.raises(SyntaxError):
        notebook.run("%%audit\nfor\n")


def test_steps_that_are_not_recorded_are_named(notebook: Notebook) -> None:
    outputs = notebook.run("%%audit\ny = np.linalg.solve(np.eye(5), x * w)\n")
    line = str(outputs.result).splitlines()[0]
    assert line.startswith("not recorded: numpy.linalg.solve at In[3]:2:5 is taken as given")


def test_the_extension_can_be_unloaded(notebook: Notebook) -> None:
    notebook.run("%unload_ext graphir")
    assert notebook.magics == {"line": {}, "cell": {}}


# -- IPython itself


def test_ipython_runs_the_magics() -> None:
    pytest.importorskip("IPython", reason="IPython is not installed")
    from IPython.core.interactiveshell import InteractiveShell  # pyright: ignore
    from IPython.utils.capture import capture_output  # pyright: ignore

    shell: Any = InteractiveShell.instance()
    try:
        shell.run_cell("%load_ext graphir\nimport numpy as np\nx = np.ones(3, np.float32)")
        with capture_output() as captured:
            run = shell.run_cell("%%audit\ny = x * np.float64(2)\ny\n", store_history=True)
        assert run.success and type(shell.user_ns["y"]) is np.ndarray
        [shown] = captured.outputs[:1]
        assert shown.data["text/plain"] == "array([2., 2., 2.])"
        assert "the result is float64 because line 2 of In[1] multiplies" in repr(run.result)
        with capture_output() as captured:
            run = shell.run_cell("%%audit --bogus\nx", store_history=True)
        assert "unrecognized arguments" in captured.stderr + str(run.error_in_exec)
        graph = Graph("g")
        assert not shell.display_formatter.format(graph.input("int8"))[0].get("text/html")
    finally:
        shell.run_cell("%unload_ext graphir")
        InteractiveShell.clear_instance()
        linecache.clearcache()


def test_annotate_shows_the_lines_of_a_cell(notebook: Notebook, tmp_path: Path) -> None:
    cell = "def twice(v):\n    return v * np.float64(2)\n\ny = twice(x) + w\ny[:2]\n"
    outputs = notebook.run(f"%%annotate -o {tmp_path / 'out.json'}\n{cell}")
    assert isinstance(outputs.result, Annotated) and "y" in notebook.user_ns
    lines = str(outputs.result).splitlines()
    assert lines[0] == "In[3]" and "2 | def twice(v):                 # v: float32[5]" in lines
    assert "5 | y = twice(x) + w              # y: float64[5]" in lines
    assert '"file": "In[3]", "line": 2' in (tmp_path / "out.json").read_text()
    graph = 'from graphir import Graph\ng = Graph("g")\ng.output(g.input("int8", (2,)) * 2)\ng\n'
    built = notebook.run(f"%%annotate\n{graph}").result
    assert isinstance(built, Annotated) and "int8[2]" in str(built)
    with pytest.raises(UsageError, match="unrecognized arguments: --lossy"):
        notebook.run("%%annotate --lossy\nx * 2\n")
