"""`audit(program, ..., as_dtype=)`: what a program would lose with all its floats in a dtype."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import DType, Graph, GraphError, PromotionError
from graphir.passes import cast_report
from graphir.passes.analysis.rebuild import retyped
from graphir.runtime import audit, record
from tests.support.commands import cli
from tests.support.tables import every

X = np.random.default_rng(0).normal(size=(4, 5))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    out = np.zeros(e.shape)
    out[:] = e / e.sum(axis=-1, keepdims=True, dtype=np.float64)
    out += np.float64(0.1) * np.arange(5) / 7
    return out.astype(np.float32)


@every("name", ["float16", "bfloat16", "float32", "float8_e5m2"])
def test_every_float_of_the_program_has_the_dtype(name: str) -> None:
    report = audit(softmax, X, as_dtype=name)
    (output,) = report.outputs
    assert output.dtype == name and report.results[0].dtype == DType(name).storage
    assert output.differing == output.elements and not report.hidden
    assert report.graph.name == f"softmax_as_{name}"
    entering = [row for row in report if row.kind == "explicit"]
    assert {(str(row.source), str(row.target)) for row in entering} == {("float64", name)}
    floats = {x.dtype for x in report.graph.symbols if x.dtype.is_float and not x.dtype.weak}
    steps = {x.dtype for x in report.graph.symbols if x.args and not x.dtype.is_integer}
    assert DType(name) in steps and floats <= {DType(name), DType.float64}


def test_the_errors_are_those_of_the_program_run_in_the_dtype() -> None:
    def scaled(x: Any) -> Any:
        return x * x + 0.1

    (result,) = audit(scaled, X, as_dtype="bfloat16").results
    x = X.astype(ml_dtypes.bfloat16)
    tenth = np.array(0.1).astype(ml_dtypes.bfloat16)
    assert result.tolist() == (x * x + tenth).tolist()
    error = audit(scaled, X, as_dtype="bfloat16").outputs[0]
    assert error.largest == np.abs(result.astype(float) - (X * X + 0.1)).max()


def test_arrays_of_ml_dtypes_are_arguments_then() -> None:
    x = X.astype(ml_dtypes.bfloat16)
    (mine,) = audit(softmax, x, as_dtype="bfloat16").results
    (same,) = audit(softmax, x.astype(np.float64), as_dtype="bfloat16").results
    assert mine.tolist() == same.tolist()
    (note,) = record(lambda x: x, x).notes
    assert "as_dtype='bfloat16'" in note.reason


def test_a_graph_and_a_recording_and_the_command_line(tmp_path: Path, monkeypatch: Any) -> None:
    g = Graph("g", rules="numpy")
    g.output(g.input("float64", (3,), name="x") * 0.1)
    x = np.arange(3.0)
    assert audit(g, x, as_dtype="float16").outputs[0].dtype == "float16"
    assert record(lambda x: x * 0.1, x).audit(as_dtype="float16").outputs[0].dtype == "float16"
    (tmp_path / "tenth.py").write_text("def tenth(x):\n    return x * 0.1\n")
    np.save(tmp_path / "x.npy", x)
    monkeypatch.chdir(tmp_path)
    options = ("--input", "x.npy", "--as-dtype", "bfloat16", "--format", "json")
    status, out, _ = cli("audit", "tenth.py:tenth", *options)
    assert status == 0 and json.loads(out)["outputs"][0]["dtype"] == "bfloat16"


def test_steps_that_were_not_seen_are_named_there_too() -> None:
    report = audit(lambda x: np.spacing(x) * 2, X.astype("f4"), as_dtype="float16")
    assert report.hidden and report.unseen[0].what == "spacing"
    assert not report.outputs[0].is_known


def test_what_cannot_be_asked() -> None:
    g = Graph("g", rules="numpy")
    g.output(g.input("float64", (3,), name="x") * 0.1)
    with pytest.raises(GraphError, match="the dtype of all floats is a float dtype; got int8"):
        retyped(g, "int8")
    with pytest.raises(GraphError, match="is explicit"):
        retyped(cast_report(g).explicit, "float32")
    with pytest.raises(PromotionError, match="'jax_strict' refuses"):
        retyped(softmax_graph(), "bfloat16", "jax_strict")


def softmax_graph() -> Graph:
    return record(lambda x: x * np.arange(5), X).graph


def test_audit_takes_a_function() -> None:
    assert str(audit(softmax, X)) == str(record(softmax, X).audit())
    assert audit(softmax, x=X).outputs[0].dtype == "float32"
