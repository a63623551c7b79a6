"""A masked module does not load: the literal 0.0 of `where` was exported as a double.

https://github.com/pytorch/pytorch/issues/118733
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def literal(value, name):
    tensor = numpy_helper.from_array(np.float64(value), name)  # born
    return helper.make_node("Constant", [], [name], name, value=tensor)


def attention_weights():
    return [
        helper.make_node("MatMul", ["q", "k"], ["/attention/scores"], "/attention/MatMul"),
        literal(0.0, "/attention/Constant_output_0"),
        helper.make_node(
            "Where",  # guilty
            ["mask", "/attention/scores", "/attention/Constant_output_0"],
            ["/attention/masked"],
            "/attention/Where",
        ),
        helper.make_node("Softmax", ["/attention/masked"], ["weights"], "/attention/Softmax"),
    ]


def model():
    graph = helper.make_graph(
        attention_weights(),
        "attention",
        [
            helper.make_tensor_value_info("q", TensorProto.FLOAT, [2, 4]),
            helper.make_tensor_value_info("k", TensorProto.FLOAT, [4, 3]),
            helper.make_tensor_value_info("mask", TensorProto.BOOL, [2, 3]),
        ],
        [helper.make_tensor_value_info("weights", TensorProto.FLOAT, [2, 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    q, k = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    return {"q": q, "k": k, "mask": np.eye(2, 3, dtype=bool)}


def shows_fault(result):
    return isinstance(result, Exception)
