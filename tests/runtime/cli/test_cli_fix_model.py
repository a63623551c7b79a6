"""`graphir fix` of models: edits of nodes that ONNX's checker takes and onnxruntime runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import load, parser, save

from graphir.runtime import from_onnx
from graphir.runtime.cli.main import main

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
SQUARES = f"""{HEAD} g (float16[4, 8] x) => (float16[4, 1] y) {{
    [Mul_1] squares = Mul(x, x)
    [Mean_2] mean = ReduceMean<axes=[-1]>(squares)
    [Sqrt_3] y = Sqrt(mean)
}}"""
MIXED = f"""{HEAD} g (float[3] x) => (float[3] y)
    <double scale = {{0.5}}, int32[1] shape = {{3}}> {{
    [Mul_1] z = Mul(x, scale)
    [Reshape_2] y = Reshape(z, shape)
}}"""


def fix(folder: Path, text: str, x: np.ndarray, *options: str) -> int:
    save(parser.parse_model(text), folder / "m.onnx")
    np.save(folder / "x.npy", x)
    return main(["fix", str(folder / "m.onnx"), "--input", str(folder / "x.npy"), *options])


def test_a_tried_fix_is_written_and_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.full((4, 8), 400, np.float16)
    assert fix(tmp_path, SQUARES, x, "--write") == 0
    out = capsys.readouterr().out
    assert "tried:" in out and "+[Mul_1] squares_float32 = Mul (x_float32, x_float32)" in out
    assert "+[y_cast] y = Cast <to: int = 10> (y_float32)" in out  # 400 fits again after Sqrt
    session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / "m.fixed.onnx")
    assert np.array_equal(session.run(None, {"x": x})[0], x[:, :1])
    assert load(tmp_path / "m.onnx") == parser.parse_model(SQUARES)


def test_operands_get_the_types_that_nodes_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fix(tmp_path, MIXED, np.ones(3, np.float32), "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert "was refused" in document["fix"] and document["refused"] == []
    assert "+float scale" in document["diff"] and "+int64 shape" in document["diff"]


def test_a_right_model_has_no_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fix(tmp_path, SQUARES, np.ones((4, 8), np.float16), "--write") == 1
    assert "no fix: no edit is known" in capsys.readouterr().out
    assert not (tmp_path / "m.fixed.onnx").exists()


NOTED = {
    "<double[2] w = {0.5, 0.25}> { y = Mul(x, w) }": "stores w, x as double, and float holds",
    "<float[2] t = {1.65e9, 1.6501e9}> { d = Cast<to=11>(t) y = Sub(x, d) }": "are 128 apart",
    "{ i = Cast<to=7>(x) m = ReduceMean<axes=[0]>(i) y = Cast<to=11>(m) }": "averages int64",
    "<float16 e = {0}> { h = Cast<to=10>(x) s = Add(h, e) r = Sqrt(s) y = Cast<to=11>(r) }": (
        "its value is 0: float16 holds no epsilon"
    ),
}


@pytest.mark.parametrize("body", NOTED)
def test_types_that_are_evidence_of_a_loss_are_noted(body: str) -> None:
    graph = from_onnx(parser.parse_model(f"{HEAD} g (double[2] x) => (double[n] y) {body}"))
    (note,) = graph.notes
    assert NOTED[body] in note
