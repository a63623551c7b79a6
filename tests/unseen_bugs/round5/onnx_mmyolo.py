"""The end of a detector with suppression inside: boxes and labels that do not belong to the image are blanked.

https://github.com/open-mmlab/mmyolo/issues/988
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Collects the nodes of a traced function under the names the exporter gives."""

    def __init__(self):
        self.nodes, self.initializers, self.counts = [], [], {}

    def constant(self, array):
        name = self.name("Constant") + "_output_0"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def name(self, op):
        i = self.counts.get(op, 0)
        self.counts[op] = i + 1
        return "/" + op + ("_%d" % i if i else "")

    def op(self, op, *inputs, **attrs):
        name = self.name(op)
        self.nodes.append(helper.make_node(op, list(inputs), [name + "_output_0"], name=name, **attrs))
        return name + "_output_0"


def new_ones(g, size, like):
    return g.constant(np.ones(size, np.float32))


def new_zeros(g, size, like):
    return g.constant(np.zeros(size, np.float32))


def select_nms_index(g, dets, labels, batch_inds, batch_size):
    template = g.constant(np.arange(batch_size, dtype=np.int64)[:, None])
    mine = g.op("Equal", batch_inds, template)
    mask = g.op("Unsqueeze", mine, g.constant(np.array([-1], np.int64)))
    batched_dets = g.op("Where", mask, g.op("Unsqueeze", dets, g.constant(np.array([0], np.int64))),
                        new_zeros(g, 1, dets))
    no_label = g.op("Neg", new_ones(g, 1, labels))
    batched_labels = g.op("Where", mine, g.op("Unsqueeze", labels, g.constant(np.array([0], np.int64))), no_label)
    return batched_dets, batched_labels


def model():
    g = Graph()
    dets, labels = select_nms_index(g, "selected_dets", "cls_inds", "batch_inds", 2)
    g.nodes.append(helper.make_node("Identity", [dets], ["dets"], name="/Identity_dets"))
    g.nodes.append(helper.make_node("Identity", [labels], ["labels"], name="/Identity_labels"))
    graph = helper.make_graph(
        g.nodes, "main_graph",
        [helper.make_tensor_value_info("selected_dets", TensorProto.FLOAT, [5, 5]),
         helper.make_tensor_value_info("cls_inds", TensorProto.INT64, [5]),
         helper.make_tensor_value_info("batch_inds", TensorProto.INT64, [5])],
        [helper.make_tensor_value_info("dets", TensorProto.FLOAT, [2, 5, 5]),
         helper.make_tensor_value_info("labels", TensorProto.INT64, [2, 5])], g.initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    rng = np.random.default_rng(0)
    return {"selected_dets": rng.uniform(1, 9, (5, 5)).astype(np.float32),
            "cls_inds": np.array([3, 1, 0, 7, 2]), "batch_inds": np.array([0, 1, 1, 0, 1])}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
