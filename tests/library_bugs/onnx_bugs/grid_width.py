"""A detection head does not load: positions in float are multiplied by an int64 width.

https://github.com/microsoft/onnxruntime/issues/6470
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def width_of(name):
    axis = numpy_helper.from_array(np.array(1, np.int64), "width_axis")
    return [axis], [
        helper.make_node("Shape", [name], ["shape"], "Shape_0"),
        helper.make_node("Gather", ["shape", "width_axis"], ["width"], "Gather_2"),  # born
    ]


def modulo(name, divisor):
    return [
        helper.make_node("Cast", [divisor], ["divisor"], "Cast_5", to=TensorProto.FLOAT),
        helper.make_node("Div", [name, "divisor"], ["ratio"], "Div_6"),
        helper.make_node("Floor", ["ratio"], ["whole"], "Floor_7"),
        helper.make_node("Mul", ["whole", divisor], ["multiple"], "Mul_11"),  # guilty
        helper.make_node("Sub", [name, "multiple"], ["column"], "Sub_12"),
    ]


def model():
    constants, shape_nodes = width_of("image")
    graph = helper.make_graph(
        shape_nodes + modulo("positions", "width"),
        "head",
        [
            helper.make_tensor_value_info("positions", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("image", TensorProto.FLOAT, ["h", "w"]),
        ],
        [helper.make_tensor_value_info("column", TensorProto.FLOAT, ["n"])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {
        "positions": np.arange(5, dtype=np.float32),
        "image": np.zeros((2, 3), np.float32),
    }


def shows_fault(result):
    return isinstance(result, Exception)
