"""A module in half precision does not load: its exponent is float.

https://github.com/microsoft/onnxruntime/issues/5696
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def converted(array, half):
    return array.astype(np.float16) if half else array


def exponent(value):
    return numpy_helper.from_array(np.array(value, np.float32), "exponent")  # born


def power_net(half):
    weight = converted(np.eye(2, dtype=np.float32), half)
    nodes = [
        helper.make_node("MatMul", ["input", "weight"], ["hidden"], "MatMul_0"),
        helper.make_node("Pow", ["hidden", "exponent"], ["output"], "Pow_1"),  # guilty
    ]
    return nodes, [numpy_helper.from_array(weight, "weight"), exponent(2)]


def model():
    nodes, initializers = power_net(half=True)
    graph = helper.make_graph(
        nodes,
        "power_net",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT16, [2, 2])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT16, [2, 2])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])


def inputs():
    return {"input": np.ones((2, 2), np.float16)}


def shows_fault(result):
    return isinstance(result, Exception)
