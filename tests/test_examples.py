"""The examples run from any directory, and what they print is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np

from graphir import DType, Graph
from graphir.passes import CastReport, cast_report, lower
from graphir.runtime import execute, interpret
from tests.support.loading import EXAMPLES
from tests.support.loading import example as module
from tests.support.tables import every

ROOT = Path(__file__).parent.parent
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
ELSEWHERE = tempfile.gettempdir()


@cache
def printed(name: str) -> str:
    """What an example prints, run by itself from a directory that is not the checkout."""
    found = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        cwd=ELSEWHERE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


def line_of(name: str, text: str) -> int:
    """The number of the one line of an example that contains a text."""
    lines = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if text in line)
    return found


def number_after(name: str, label: str) -> float:
    found = re.search(rf"^{label} +([0-9.]+)", printed(name), re.MULTILINE)
    assert found is not None
    return float(found[1])


def summary(report: CastReport) -> list[tuple[object, ...]]:
    return [
        (at.line, at.layer, row.kind, row.operand, str(row.source), str(row.target), row.exact)
        for row in report
        for at in [row.location]
    ]


def test_there_are_three():
    assert NAMES == ["digits", "image_pipeline", "question"]


@every("name", NAMES)
def test_each_says_what_one_will_see(name: str):
    assert module(name).__doc__
    assert printed(name)
    assert callable(module(name).main)


# -- question.py


def test_question_is_answered_before_and_after():
    text = printed("question")
    assert text.startswith("int16 + float32 is float32")
    before, after = re.findall(r"^graph @question.*?^}", text, re.MULTILINE | re.DOTALL)
    assert "rules=max" in before
    assert "cast(" not in before
    assert "rules=explicit from=max" in after
    assert after.count("cast(") == 1


def test_question_graphs_are_text_that_parses():
    for text in re.findall(r"^graph @question.*?^}", printed("question"), re.MULTILINE | re.DOTALL):
        graph = Graph.parse(text)
        assert str(graph) == text
        assert execute(graph) == np.float32(2)


def test_question_names_the_line_of_the_cast():
    line = line_of("question", "z = x + y")
    assert re.search(
        rf"question\.py:{line}:9 +lhs of add +int16 +float32 +implicit .* exact",
        printed("question"),
    )
    assert "array(2., dtype=float32)" in printed("question")
    assert "int16 -> int32 -> int64 -> float16 -> bfloat16 -> float32: exact" in printed("question")


# -- digits.py


@cache
def digits() -> tuple[Graph, np.ndarray, np.ndarray, list]:
    example = module("digits")
    images, labels, test = example.load()
    layers = example.train(images[~test], labels[~test])
    return example.deployed(*layers), images[test], labels[test], layers


def test_digits_data():
    with np.load(EXAMPLES / "data" / "digits.npz", allow_pickle=False) as data:
        images, labels = data["images"], data["labels"]
    assert (images.shape, images.dtype, images.min(), images.max()) == ((1797, 8, 8), "u1", 0, 16)
    # The class distribution that the data set's own description gives for optdigits.tes.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert "CC BY 4.0" in (EXAMPLES / "data" / "README.md").read_text(encoding="utf-8")


def test_digits_are_recognised():
    as_float32 = number_after("digits", "accuracy in float32")
    deployed = number_after("digits", "accuracy as deployed")
    assert min(as_float32, deployed) >= 0.95
    assert abs(as_float32 - deployed) <= 0.01
    assert number_after("digits", "test images") == 599


def test_digits_casts():
    line = {text: line_of("digits", text) for text in _DIGITS_LINES}
    u8, w, s, b, h = line.values()
    dense = [
        (w, "implicit", "rhs", "int8", "bfloat16", True),
        (s, "implicit", "rhs", "float16", "bfloat16", False),
        (b, "implicit", "lhs", "bfloat16", "float32", True),
    ]
    hidden, logits = ([(r[0], layer, *r[1:]) for r in dense] for layer in ("hidden", "logits"))
    assert summary(cast_report(digits()[0]).in_order()) == [
        (u8, "", "implicit", "lhs", "uint8", "bfloat16", True),
        *hidden,
        (h, "hidden", "explicit", "x", "float32", "bfloat16", False),
        *logits,
    ]


_DIGITS_LINES = (
    'images.reshape("n", 64) *',
    "x @ g.constant(weights)",
    "y * g.constant(scale)",
    "y + g.constant(layer.bias)",
    "ops.relu(dense",
)


def test_digits_prints_the_lossy_casts_apart():
    every, lossy = printed("digits").split("Those that can lose something:")
    for text, times in (("y * g.constant(scale)", 2), ("ops.relu(dense", 1)):
        place = f"digits.py:{line_of('digits', text)}:"
        assert every.count(place) == lossy.count(place) == times
    assert f"digits.py:{line_of('digits', 'x @ g.constant(weights)')}:" not in lossy


def test_digits_outputs_are_typed():
    logits, found = digits()[0].outputs
    assert (str(logits.type), str(found.type)) == ("float32[n, 10]", "int64[n]")


def test_digits_equals_the_same_network_in_ml_dtypes():
    """NumPy and ml_dtypes, rounding by hand wherever the graph's dtypes say so."""
    graph, images, _, layers = digits()
    wide, narrow = np.float32, ml_dtypes.bfloat16

    def rounded(values: np.ndarray) -> np.ndarray:
        return values.astype(narrow).astype(wide)

    x = rounded(images.reshape(-1, 64).astype(wide) / 16)
    for layer in layers:
        weights, scale = module("digits").quantised(layer.weights)
        y = rounded(np.matmul(x, weights.astype(wide)))
        z = rounded(y * rounded(scale.astype(wide))) + layer.bias
        x = rounded(np.maximum(z, 0))
    logits, found = execute(graph, images=images)
    np.testing.assert_array_equal(logits, z)
    np.testing.assert_array_equal(found, z.argmax(axis=1))


@every("count", [0, 1, 7])
def test_digits_takes_any_number_of_images(count: int):
    graph, images, *_ = digits()
    run, meant = execute(graph, images[:count]), interpret(graph, images[:count])
    for one, other in zip(run, meant, strict=True):
        assert len(one) == count
        np.testing.assert_array_equal(one, other)


def test_digits_lowers_once():
    lowered = lower(digits()[0])
    assert lower(lowered) is lowered


# -- image_pipeline.py


def test_image_pipeline_results_are_close():
    assert 0 < number_after("image_pipeline", "floats apart, at most") < 0.5
    assert number_after("image_pipeline", "pixels apart, at most") == 1
    assert 0 < number_after("image_pipeline", "pixels that differ") < 0.1 * 254 * 254


def test_image_pipeline_casts_that_lose_something():
    gain = line_of("image_pipeline", "g.scalar[dtype](1 / 255)")
    end = line_of("image_pipeline", "ops.round(")
    gamma, back = (line_of("image_pipeline", text) for text in ("** GAMMA", "** (1 / GAMMA)"))
    tf32, f32 = (
        cast_report(module("image_pipeline").pipeline(dtype)).only(exact=False).in_order()
        for dtype in (DType.tensor_float32, DType.float32)
    )
    for dtype, report in (("float32", f32), ("tensor_float32", tf32)):
        numbers = report.only("literal")
        assert summary(numbers) == [
            (gamma, "linear", "literal", "rhs", "weak_float", dtype, False),
            (back, "display", "literal", "rhs", "weak_float", dtype, False),
        ]
        assert [row.text for row in numbers] == ["GAMMA", "(1 / GAMMA)"]
        assert summary(report.only("explicit")) == [
            (end, "display", "explicit", "x", dtype, "uint8", False)
        ]
    assert not f32.only("implicit")
    assert summary(tf32.only("implicit")) == [
        (gain, "normalise", "implicit", "lhs", "float32", "tensor_float32", False)
    ]
    (lossy,) = tf32.only("implicit")
    assert (lossy.witness, lossy.text) == (2049, "x")
    for line in (gain, end):
        assert f"image_pipeline.py:{line}:" in printed("image_pipeline")


@every("name", ["digits", "image_pipeline"])
def test_rows_stand_at_the_very_expression(name: str) -> None:
    graph = digits()[0] if name == "digits" else module(name).pipeline(DType.tensor_float32)
    lines = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    lossy = cast_report(graph).only(exact=False)
    assert {row.text for row in lossy} == _LOSSY[name]
    for row in lossy:
        place, found = row.location, row.expression
        assert found is not None
        assert lines[place.line - 1][place.column - 1 : place.end_column - 1] == found.text
        assert row.text in found.text


_LOSSY = {
    "digits": {"g.constant(scale)", "ops.relu(dense(g, x, hidden))"},
    "image_pipeline": {"x", "GAMMA", "(1 / GAMMA)", "ops.round(x.clip(0, 255))"},
}


def test_image_pipeline_equals_numpy_in_float32():
    example = module("image_pipeline")
    image, gains = example.photograph()
    x = np.clip(image.astype(np.float32) * gains * np.float32(1 / 255), 0, 1)
    x = x ** np.float32(2.2)
    x = (x[:-2] + 2 * x[1:-1] + x[2:]) / 4
    x = (x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]) / 4
    x = np.ascontiguousarray(x) ** np.float32(1 / 2.2) * 255
    assert x.dtype == np.float32
    floats, pixels = execute(example.pipeline(DType.float32), image, gains)
    np.testing.assert_allclose(floats, x, rtol=1e-6)
    assert np.mean(pixels == np.rint(x).clip(0, 255).astype(np.uint8)) > 0.999


def test_image_pipeline_keeps_tensor_float32():
    example = module("image_pipeline")
    floats, pixels = execute(example.pipeline(DType.tensor_float32), *example.photograph())
    assert not np.any(floats.view(np.uint32) & 0x1FFF)
    assert (pixels.dtype, pixels.shape) == (np.uint8, (254, 254))
