"""The sine position encoding of a detection transformer, computed from the padding mask and
added to the projected features, as the trace of a torch module gives it.

https://github.com/facebookresearch/detr/issues/264
"""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"num_pos_feats": 8, "temperature": 10000, "hidden_dim": 16, "scale": 2 * math.pi}
TORCH_TO_ONNX = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


class Tracer:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 1200

    def parameter(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, value):
        tensor = numpy_helper.from_array(np.asarray(value))
        return self.op("Constant", value=tensor)

    def op(self, kind, *inputs, out=None, **attrs):
        out = out or str(self.count)
        name = "%s_%d" % (kind, self.count)
        self.count += 1
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def cumsum(g, x, dim, dtype=None):
    axis = g.constant(np.int64(dim))
    return g.op("CumSum", x, axis)


def last(g, x, axis):
    start, end = g.constant(np.array([-1])), g.constant(np.array([np.iinfo(np.int64).max]))
    return g.op("Slice", x, start, end, g.constant(np.array([axis])))


def embed(g, x, dim_t):
    pos = g.op("Div", g.op("Unsqueeze", x, axes=[3]), dim_t)
    parts = []
    for kind, offset in (("Sin", 0), ("Cos", 1)):
        part = g.op("Slice", pos, g.constant(np.array([offset])),
                    g.constant(np.array([np.iinfo(np.int64).max])),
                    g.constant(np.array([3])), g.constant(np.array([2])))
        parts.append(g.op("Unsqueeze", g.op(kind, part), axes=[4]))
    stacked = g.op("Concat", *parts, axis=4)
    return g.op("Reshape", stacked, g.constant(np.array([0, 0, 0, -1])))


def position_embedding_sine(g, mask):
    n, scale = CONFIG["num_pos_feats"], np.float32(CONFIG["scale"])
    not_mask = g.op("Not", mask)
    y_embed = cumsum(g, not_mask, 1, dtype="float32")
    x_embed = cumsum(g, not_mask, 2, dtype="float32")
    eps = g.constant(np.float32(1e-6))
    y_embed = g.op("Mul", g.op("Div", y_embed, g.op("Add", last(g, y_embed, 1), eps)), g.constant(scale))
    x_embed = g.op("Mul", g.op("Div", x_embed, g.op("Add", last(g, x_embed, 2), eps)), g.constant(scale))
    dim_t = CONFIG["temperature"] ** (2 * (np.arange(n) // 2) / n)
    dim_t = g.constant(dim_t.astype(np.float32))
    pos = g.op("Concat", embed(g, y_embed, dim_t), embed(g, x_embed, dim_t), axis=3)
    return g.op("Transpose", pos, perm=[0, 3, 1, 2])


def model():
    rng = np.random.default_rng(0)
    g = Tracer()
    w = g.parameter("input_proj.weight", rng.normal(size=(16, 6, 1, 1)).astype(np.float32) * 0.2)
    b = g.parameter("input_proj.bias", np.zeros(16, np.float32))
    pos = position_embedding_sine(g, "mask")
    src = g.op("Conv", "features", w, b, kernel_shape=[1, 1])
    g.op("Add", src, pos, out="src_pos")
    graph = helper.make_graph(
        g.nodes, "torch-jit-export",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, 6, 5, 7]),
         helper.make_tensor_value_info("mask", TensorProto.BOOL, [1, 5, 7])],
        [helper.make_tensor_value_info("src_pos", TensorProto.FLOAT, [1, 16, 5, 7])],
        g.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 12)])


def inputs():
    mask = np.zeros((1, 5, 7), bool)
    mask[:, 4:], mask[:, :, 6:] = True, True
    return {"features": np.random.default_rng(1).normal(size=(1, 6, 5, 7)).astype(np.float32),
            "mask": mask}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
