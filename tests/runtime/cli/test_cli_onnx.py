"""ONNX models on the command line: sizes, types and values of inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import parser, save

from graphir.runtime.cli.main import main

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 3] x, float[batch, n] input_1) => (float[batch, m] y)
    { y = Concat<axis=1>(x, input_1) }"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    proto = parser.parse_model(MODEL)
    proto.graph.input[1].name = proto.graph.node[0].input[1] = "input.1"
    save(proto, tmp_path / "m.onnx")
    del proto.graph.input[1].type.tensor_type.shape.dim[:]
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    save(proto, tmp_path / "rankless.onnx")
    return str(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("options", "types"),
    [
        ([], "float32[batch, 3], %input_1: float32[batch, n]"),
        (["--size", "batch=2"], "float32[2, 3], %input_1: float32[2, n]"),
        (["--size", "batch=2", "--size", "n=5"], "float32[2, 3], %input_1: float32[2, 5]"),
        (["--input", "input_1=float32[2, 5]"], "float32[2, 3], %input_1: float32[2, 5]"),
        (["--input", "float32[2, 3]"], "float32[2, 3], %input_1: float32[2, n]"),
    ],
)
def test_sizes_and_types_state_the_sizes_of_a_model(
    options: list[str], types: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lower", model, *options]) == 0
    assert f"(%x: {types})" in capsys.readouterr().out


def test_sizes_have_the_names_that_the_model_gives_them(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = parser.parse_model(MODEL)
    for info, name in zip(proto.graph.input, ("batch size", "n + 1"), strict=True):
        info.type.tensor_type.shape.dim[-1].dim_param = name
    save(proto, model)
    for options, types in {
        ("batch size=4",): "float32[batch, 4], %input_1: float32[batch, n+1]",
        ("batch_size=4", "n + 1=5"): "float32[batch, 4], %input_1: float32[batch, 5]",
        ("n=5", "batch=1"): "float32[1, batch_size], %input_1: float32[1, 6]",
    }.items():
        assert main(["lower", model, *[f"--size={option}" for option in options]]) == 0
        assert f"(%x: {types})" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ["--size", "bach=2"],
            "the model has no size or input 'bach'; it has batch, n, x, input.1",
        ),
        (["--input", "x=int32[2, 3]"], "input 'x' is float32[batch, 3]; got int32[2, 3]"),
        (["--input", "x=float32[2, 4]"], "input 'x' is float32[batch, 3]; got float32[2, 4]"),
        (["--input", "z=float32[2, 4]"], "the model has no size or input 'z'"),
        (["--size", "batch=2", "--input", "x=float32[3, 3]"], "got float32[3, 3]"),
        (["--input", "x=x.npy"], "leave --input out"),
    ],
)
def test_what_contradicts_the_model_is_refused(
    options: list[str], problem: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lower", model, *options]) != 0
    assert problem in capsys.readouterr().err


def test_missing_inputs_and_ranks_are_asked_for_by_the_line_to_type(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    given = ["--input", f"x={tmp_path / 'x.npy'}"]
    assert main(["run", model, *given]) != 0
    error = capsys.readouterr().err
    assert main(["run", model]) != 0
    assert "add --input x=x.npy --input input_1=input_1.npy" in capsys.readouterr().err
    assert "missing input_1; it takes (x: float32[batch, 3], " in error
    assert "--input input_1=input_1.npy" in error
    rankless = str(tmp_path / "rankless.onnx")
    assert main(["run", rankless, *given]) != 0
    assert '--input "input_1=float32[2, 3]"' in capsys.readouterr().err
    assert main(["lower", rankless, "--input", "input_1=float32[2, 5]"]) == 0
    assert "%input_1: float32[2, 5]" in capsys.readouterr().out


def test_a_model_runs_on_files_beside_sizes(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, shape in {"x": (2, 3), "z": (2, 5)}.items():
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
    inputs = [f"--input={tmp_path / 'x.npy'}", f"--input=input_1={tmp_path / 'z.npy'}"]
    for options in ([], ["--size", "batch=2"]):
        assert main(["run", model, *inputs, *options, "-o", str(tmp_path / "out.npz")]) == 0
        assert np.load(tmp_path / "out.npz")["output0"].shape == (2, 8)
    assert main(["run", model, "--input", "float32[2, 3]"]) != 0
    assert "input_1" in capsys.readouterr().err
