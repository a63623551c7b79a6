"""Exports of torch and scikit-learn read, report, and run with the library's values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from graphir import DType, Graph
from graphir.passes import cast_report
from graphir.runtime import from_onnx, interpret
from graphir.text.printer import large_constants
from tests.runtime.sources import onnx_exports
from tests.support.tables import every

MODULES = """
    perceptron convolution residual lstm gru transformer attention padding embedding groups layers
    root_mean_square upsample transposed half quantized branch causal indices numbers
"""
PIPELINES = """
    scalers components singular logistic linear ridge descent vectors vector_regression neighbors
    tree forest boosting clusters bayes perceptron imputer one_hot ordinal texts process isolation
"""
NO_EXPORT = {("transformer", False), ("quantized", True), ("branch", False)}
"""Modules that torch 2.13 does not export, by exporter."""


def results_of(graph: Graph, *arrays: Any) -> tuple[Any, ...]:
    """Report and run a graph."""
    assert str(cast_report(graph)) and Graph.parse(str(graph), large_constants(graph)).outputs
    results = interpret(graph, *arrays)
    return results if isinstance(results, tuple) else (results,)


def assert_close(result: Any, array: Any, error: float) -> None:
    assert result.shape == array.shape and result.dtype == array.dtype
    scale = np.abs(array.astype(float)).max(initial=1e-3)
    assert np.allclose(result.astype(float), array.astype(float), error, error * scale)


SAMPLE = ["lstm", "half", "causal", "indices", "numbers"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", MODULES.split())
def test_a_module_of_torch_has_its_values(name: str, dynamo: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if dynamo or name not in SAMPLE:
        pytest.importorskip("onnxscript", reason="torch exports by onnxscript; a sample needs none")
    if (name, dynamo) in NO_EXPORT:
        pytest.skip("torch does not export it")
    export = onnx_exports.torch_modules()[name]
    path = tmp_path / "module.onnx"
    onnx_exports.torch_model(export, path, dynamo)
    graph = from_onnx(path)
    twice = torch.cat([export.args[0]] * 2), *export.args[1:]
    for args in (export.args, twice) if export.is_dynamic else (export.args,):
        with torch.no_grad():
            leaves = torch.utils._pytree.tree_leaves(export.program(*args))
        results = results_of(graph, *[arg.numpy() for arg in args])
        for result, leaf in zip(results, leaves, strict=True):
            assert_close(result, leaf.numpy(), 2e-3 if name == "half" else 1e-4)


@pytest.mark.filterwarnings("ignore")
@every("name", PIPELINES.split())
def test_a_pipeline_of_scikit_learn_has_its_values(name: str) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("skl2onnx", reason="pipelines are exported by skl2onnx")
    export = onnx_exports.pipelines()[name]()
    pipeline, (x,) = export.program, export.args
    graph = from_onnx(onnx_exports.sklearn_model(export))
    data = x if x.dtype == np.float32 else np.asarray(x, "U")[..., None].view(np.uint32)
    results = results_of(graph, data)
    method = "predict" if hasattr(pipeline[-1], "predict") else "transform"
    expected = getattr(pipeline, method)(x)
    expected = expected.toarray() if hasattr(expected, "toarray") else np.asarray(expected)
    assert np.allclose(results[0].reshape(expected.shape), expected, 1e-3, 1e-3)
    if hasattr(pipeline[-1], "predict_proba"):
        assert np.allclose(results[1], pipeline.predict_proba(x), 1e-3, 1e-3)


@pytest.mark.filterwarnings("ignore")
def test_probabilities_in_maps_are_the_array_of_the_maps() -> None:
    pytest.importorskip("skl2onnx", reason="pipelines are exported by skl2onnx")
    export = onnx_exports.pipelines()["logistic"]()
    graph = from_onnx(onnx_exports.sklearn_model(export, has_maps=True))
    _, probabilities = results_of(graph, *export.args)
    assert np.allclose(probabilities, export.program.predict_proba(*export.args), 1e-3)
    assert "without their keys" in "\n".join(cast_report(graph).sentences)


ENCODER = """
<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
encoder (string[n, 2] x) => (string[n, 2] y, int64[n, 2] z)
{
   y = Identity (x)
   z = ai.onnx.ml.LabelEncoder <keys_strings = ["ab", "c"], values_int64s = [3, 4]> (x)
}
"""


def test_text_comes_and_goes_as_the_numbers_of_its_characters() -> None:
    from onnx import parser

    graph = from_onnx(parser.parse_model(ENCODER))
    assert graph.inputs[0].dtype is DType.uint32
    text = np.array([["ab", "c"], ["c", "more"], ["", "é"]])
    same, numbers = results_of(graph, text[..., None].view(np.uint32))
    assert same.view(f"U{same.shape[-1]}")[..., 0].tolist() == text.tolist()
    assert numbers.tolist() == [[3, 4], [4, -1], [-1, -1]]
    with pytest.raises(ValueError, match="character is too large"):
        interpret(graph, np.full((1, 2, 1), 1 << 21, np.uint32))
