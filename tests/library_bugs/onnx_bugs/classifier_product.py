"""A linear classifier does not load: its input is double and its coefficients are float.

https://github.com/microsoft/onnxruntime/issues/6782
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FEATURES, CLASSES = 4, 3


def coefficients():
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(FEATURES, CLASSES)).astype(np.float32)  # born
    return [
        numpy_helper.from_array(kernel, "coefficient"),
        numpy_helper.from_array(np.zeros(CLASSES, np.float32), "intercept"),
    ]


def nodes():
    return [
        helper.make_node("MatMul", ["X", "coefficient"], ["product"], "MatMul"),  # guilty
        helper.make_node("Add", ["product", "intercept"], ["scores"], "Add"),
        helper.make_node("ArgMax", ["scores"], ["label"], "ArgMax", axis=1, keepdims=0),
    ]


def model():
    graph = helper.make_graph(
        nodes(),
        "sgd_classifier",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", FEATURES])],
        [helper.make_tensor_value_info("label", TensorProto.INT64, ["n"])],
        coefficients(),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"X": np.ones((2, FEATURES))}


def shows_fault(result):
    return isinstance(result, Exception)
