"""Rows of a paged cache: the block and the place within it of each slot, from floor division
of integer tensors as an exporter's library of operators writes it.

https://github.com/microsoft/onnxscript/issues/2589
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"block_size": 16, "world": 8}


class OpRecorder:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], {}

    def constant(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def __getattr__(self, kind):
        def record(*inputs, out=None, **attrs):
            n = self.count[kind] = self.count.get(kind, -1) + 1
            name = "node_%s_%d" % (kind, n)
            out = out or "%s_%d" % (kind.lower(), n)
            self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
            return out
        return record


def aten_floor_divide_int(op, self, other, dtype=TensorProto.INT64):
    self = op.Cast(self, to=TensorProto.FLOAT)
    other = op.Cast(other, to=TensorProto.FLOAT)
    result = op.Floor(op.Div(self, other))
    return op.Cast(result, to=dtype)


def aten_remainder_int(op, self, other):
    return op.Mod(self, other)


def aten_eq(op, self, other):
    return op.Equal(self, other)


REGISTRY = {
    "aten::floor_divide": aten_floor_divide_int,
    "aten::remainder": aten_remainder_int,
    "aten::eq": aten_eq,
}


def translate(op, graph):
    """graph: (name of the output, operator, names of the inputs) in order."""
    values = {}
    for name, target, args in graph:
        values[name] = REGISTRY[target](op, *[values.get(a, a) for a in args])
    return values


def model():
    op = OpRecorder()
    op.constant("block_size", np.array(CONFIG["block_size"], np.int64))
    op.constant("world", np.array(CONFIG["world"], np.int64))
    op.constant("rank", np.array(3, np.int64))
    values = translate(op, [
        ("blocks", "aten::floor_divide", ("slot_mapping", "block_size")),
        ("offsets", "aten::remainder", ("slot_mapping", "block_size")),
        ("owner", "aten::remainder", ("blocks", "world")),
        ("local", "aten::eq", ("owner", "rank")),
    ])
    for name in ("blocks", "offsets", "local"):
        op.Identity(values[name], out=name)
    graph = helper.make_graph(
        op.nodes, "main_graph",
        [helper.make_tensor_value_info("slot_mapping", TensorProto.INT64, ["tokens"])],
        [helper.make_tensor_value_info("blocks", TensorProto.INT64, ["tokens"]),
         helper.make_tensor_value_info("offsets", TensorProto.INT64, ["tokens"]),
         helper.make_tensor_value_info("local", TensorProto.BOOL, ["tokens"])],
        op.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=10,
                             opset_imports=[helper.make_opsetid("", 18)])


def inputs():
    slots = np.array([0, 15, 16, 47, 16777217, 536870911, 8589934591, -17], np.int64)
    return {"slot_mapping": slots}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
