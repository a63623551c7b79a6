"""Places in notebooks: `In[3]:4` for line 4 of the cell that ran third, as IPython names cells."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from graphir import CastWarning, PromotionError, source_text
from graphir.passes import cast_report
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.text import report_details
from graphir.runtime import record
from tests.support.notebooks import Notebook, notebook_shell


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    return notebook_shell(monkeypatch)


CELL = """from graphir import Graph; g = Graph("g")
x = g.input("int16", ("n",))
y = g.input("float16", ("n",))
result = x * y
g.output(result)
result
"""


def test_a_symbol_stands_in_its_cell(notebook: Notebook) -> None:
    notebook.run("z = 1\n")
    notebook.run(CELL)
    symbol = notebook.user_ns["result"]
    assert str(symbol.location) == "In[2]:4:10"
    assert symbol.location.source.startswith("/tmp/ipykernel_7/")
    assert source_text.source_line(symbol.location.source, 4) == "result = x * y\n"


def test_a_cell_that_runs_again_has_the_new_number(notebook: Notebook) -> None:
    first = notebook.run(CELL).result.location
    assert str(first) == "In[1]:4:10"
    notebook.run(CELL.replace("x * y", "y * x"))
    second = notebook.run(CELL).result.location
    assert (str(first), str(second)) == ("In[1]:4:10", "In[3]:4:10")


def test_plain_ipython_names_cells_too(notebook: Notebook) -> None:
    assert str(notebook.run(CELL, "<ipython-input-1-0123456789ab>").result.location) == "In[1]:4:10"


def test_reports_name_the_cell_and_show_its_lines(notebook: Notebook) -> None:
    graph = notebook.run(CELL).result.graph
    report = cast_report(graph)
    for name, write in REPORT_FORMATS.items():
        assert "ipykernel" not in write(report), name
        assert "In[1]" in write(report) or "In%5B1%5D" in write(report), name
    details = report_details(report).split("\n")
    assert " --> In[1]:4:10, lhs of multiply" in details
    assert "4 | result = x * y" in details and "  |          ^" in details
    assert 'loc("In[1]":4:10 to :15)' in str(graph)
    assert "In[1]:4" in report._repr_html_() and "ipykernel" not in report._repr_html_()


def test_errors_name_the_cell(notebook: Notebook) -> None:
    with pytest.raises(PromotionError, match=r"^In\[1\]:4:10: multiply.*\(In\[1\]:2:5\)"):
        notebook.run(CELL.replace('"g"', '"g", rules="max_strict"'))


def test_warnings_name_the_cell(notebook: Notebook) -> None:
    cell = CELL.replace('Graph("g")', 'Graph("g", policy=Policy(warn="lossy"))')
    with pytest.warns(CastWarning, match=r"lhs: int16\[n\] \(In\[1\]:2:5\)") as warned:
        notebook.run(f"from graphir.passes import Policy; {cell}")
    assert [(each.filename, each.lineno) for each in warned] == [("In[1]", 4)]


def test_sentences_name_the_cell_of_a_line(notebook: Notebook) -> None:
    notebook.run("import numpy as np\ndef half(x):\n    return x / np.float64(2)\n")
    notebook.run("def result(x):\n    return half(x).astype('float32') + half(x)\n")
    recording = record(notebook.user_ns["result"], np.ones(3, np.float32))
    [sentence] = recording.audit().sentences
    assert sentence.startswith("the result is float64 because line 3 of In[1] divides by")
    assert {str(row.location) for row in recording.report()} >= {"In[1]:3:12", "In[2]:2:12"}


def test_other_paths_are_as_they_are(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_text.displayed_path("/elsewhere/net.py") == "/elsewhere/net.py"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert source_text.displayed_path("<ipython-input-1-0>") == "<ipython-input-1-0>"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())  # half imported
    assert source_text.displayed_path("/elsewhere/net.py") == "/elsewhere/net.py"
