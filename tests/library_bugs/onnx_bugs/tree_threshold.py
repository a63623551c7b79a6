"""A boosted tree takes the other branch: features are cast to float before the threshold.

https://github.com/onnx/sklearn-onnx/issues/1192
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

THRESHOLD = 0.1 + 1e-12


def cast(name, result, to):
    return helper.make_node("Cast", [name], [result], f"CastTransformer_{name}", to=to)


def preprocessor():
    return [
        cast("X", "features", TensorProto.FLOAT),  # guilty
        cast("features", "wide", TensorProto.DOUBLE),
    ]


def stump():
    leaves = [np.array(-1.0, np.float32), np.array(1.0, np.float32)]
    constants = [numpy_helper.from_array(np.array(THRESHOLD), "threshold")]
    constants += [numpy_helper.from_array(leaf, f"leaf{i}") for i, leaf in enumerate(leaves)]
    nodes = [
        helper.make_node("LessOrEqual", ["wide", "threshold"], ["left"], "BRANCH_LEQ"),
        helper.make_node("Where", ["left", "leaf0", "leaf1"], ["variable"], "Leaves"),
    ]
    return nodes, constants


def model():
    nodes, constants = stump()
    graph = helper.make_graph(
        preprocessor() + nodes,
        "gradient_boosting",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", 1])],
        [helper.make_tensor_value_info("variable", TensorProto.FLOAT, ["n", 1])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    return {"X": np.array([[0.05], [0.1], [0.2]])}


def shows_fault(result):
    return result[0].ravel().tolist() != [-1, -1, 1]
