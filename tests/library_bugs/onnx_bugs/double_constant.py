"""A module does not load: its Python constant was exported as a double.

https://github.com/pytorch/pytorch/issues/81869
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Exporter:
    def __init__(self):
        self.nodes, self.count = [], 0

    def name(self):
        self.count += 1
        return f"onnx::{self.count}"

    def constant(self, value):
        result = self.name()
        tensor = numpy_helper.from_array(np.array(value), result)  # born
        self.nodes.append(helper.make_node("Constant", [], [result], result, value=tensor))
        return result

    def node(self, op, *operands, name):
        result = self.name()
        self.nodes.append(helper.make_node(op, list(operands), [result], name))
        return result


def forward(g, x):
    x = g.node("Relu", x, name="Relu_0")
    one = g.constant(1.0)
    return g.node("Sub", x, one, name="Sub_1")  # guilty


def model():
    exporter = Exporter()
    result = forward(exporter, "x")
    graph = helper.make_graph(
        exporter.nodes,
        "example_module",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, ["batch", 4])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"x": np.ones((2, 4), np.float32)}


def shows_fault(result):
    return isinstance(result, Exception)
