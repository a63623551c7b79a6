"""Powers of two are whole: the exporter casts the exponent to the base's int64.

https://github.com/pytorch/pytorch/issues/52436
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

DTYPES = {int: TensorProto.INT64, float: TensorProto.FLOAT}


def scalar(value, name):
    array = np.array(value, np.int64 if isinstance(value, int) else np.float32)
    return numpy_helper.from_array(array, name)


def power(base, exponent, result):
    to = DTYPES[type(base)]
    return [scalar(base, "base")], [
        helper.make_node("Cast", [exponent], ["exponent"], "Cast_1", to=to),  # guilty
        helper.make_node("Pow", ["base", "exponent"], ["power"], "Pow_2"),
        helper.make_node("Cast", ["power"], [result], "Cast_3", to=TensorProto.FLOAT),
    ]


def model():
    initializers, nodes = power(2, "x", "y")
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 10])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"x": np.linspace(0, 3, 10, dtype=np.float32)[None]}


def shows_fault(result):
    return not np.allclose(result[0], 2 ** inputs()["x"])
