"""Loading a graph for a neural processing unit: optional inputs of Clip are made explicit.

https://github.com/airockchip/rknn-toolkit2/issues/575
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

LOWEST, HIGHEST = 0, 1023


class Loader:
    """Copies a graph, and gives names and values to what an exporter left out."""

    def __init__(self, model):
        self.graph = model.graph
        self.extra = []

    def constant(self, name, value):
        self.extra.append(numpy_helper.from_array(np.array(value), name))
        return name

    def complete_clip(self, node):
        names = list(node.input) + [""] * (3 - len(node.input))
        for i, value in ((1, LOWEST), (2, HIGHEST)):
            if not names[i]:
                names[i] = self.constant("%s_%s" % (node.name, ("x", "min", "max")[i]), value)
        return helper.make_node("Clip", names, list(node.output), name=node.name)

    def load(self):
        nodes = [self.complete_clip(n) if n.op_type == "Clip" else n for n in self.graph.node]
        graph = helper.make_graph(nodes, self.graph.name, list(self.graph.input), list(self.graph.output),
                                  list(self.graph.initializer) + self.extra)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def exported():
    table = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["position"], ["/Cast_output_0"], name="/Cast", to=TensorProto.INT32),
        helper.make_node("Clip", ["/Cast_output_0", "", "last"], ["/Clip_output_0"], name="/Clip"),
        helper.make_node("Gather", ["table", "/Clip_output_0"], ["embedding"], name="/Gather", axis=0),
    ]
    graph = helper.make_graph(
        nodes, "main_graph",
        [helper.make_tensor_value_info("position", TensorProto.FLOAT, [6])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [6, 4])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array(15, np.int32), "last")])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def model():
    return Loader(exported()).load()


def inputs():
    return {"position": np.array([-3.0, 0.0, 2.7, 14.2, 15.0, 40.0], np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
