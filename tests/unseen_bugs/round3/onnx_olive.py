"""Exports one attention block of an image transformer in half precision, with rotary embeddings
computed from the ids of the patches.

https://github.com/microsoft/Olive/issues/1287
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"axes_dim": [4, 8, 4], "theta": 10000, "hidden": 16, "torch_dtype": np.float16}


class Exporter:
    def __init__(self, dtype):
        self.dtype = dtype
        self.nodes, self.initializers, self.scope, self.count = [], [], "", {}

    def parameter(self, name, array):
        self.initializers.append(numpy_helper.from_array(array.astype(self.dtype), name))
        return name

    def constant(self, value):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def op(self, kind, *inputs, out=None, **attrs):
        key = self.scope + "/" + kind
        n = self.count[key] = self.count.get(key, -1) + 1
        name = key + ("_%d" % n if n else "")
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def rope(g, pos, dim, theta):
    scale = np.arange(0, dim, 2, dtype=np.float64) / dim
    omega = 1.0 / theta ** scale
    out = g.op("Einsum", pos, g.constant(omega), equation="n,d->nd")
    return g.op("Cos", out), g.op("Sin", out)


class EmbedND:
    def __init__(self, axes_dim, theta):
        self.axes_dim, self.theta = axes_dim, theta

    def __call__(self, g, ids):
        g.scope = "/pos_embed"
        parts = []
        for axis, dim in enumerate(self.axes_dim):
            pos = g.op("Gather", ids, g.constant(np.int64(axis)), axis=1)
            parts.append(rope(g, pos, dim, self.theta))
        cos, sin = (g.op("Concat", *side, axis=1) for side in zip(*parts))
        return cos, sin


class SingleBlock:
    def __init__(self, hidden, rng):
        self.hidden, self.rng = hidden, rng

    def linear(self, g, x, name):
        weight = self.rng.normal(size=(self.hidden, self.hidden)) * 0.25
        return g.op("MatMul", x, g.parameter("single.%s.weight" % name, weight))

    def rotate(self, g, x, cos, sin):
        first, second = (g.op("Slice", x, *(g.constant(np.array([v])) for v in (s, 1 << 40, 1, 2)))
                         for s in (0, 1))
        a = g.op("Sub", g.op("Mul", first, cos), g.op("Mul", second, sin))
        b = g.op("Add", g.op("Mul", first, sin), g.op("Mul", second, cos))
        return g.op("Concat", a, b, axis=1)

    def __call__(self, g, x, cos, sin):
        g.scope = "/single_transformer_blocks.0"
        q, k = (self.rotate(g, self.linear(g, x, n), cos, sin) for n in ("to_q", "to_k"))
        scale = g.constant(np.array(self.hidden ** -0.5, g.dtype))
        scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[1, 0])), scale)
        weights = g.op("Softmax", scores, axis=-1)
        return g.op("Add", x, g.op("MatMul", weights, self.linear(g, x, "to_v")))


def model():
    g = Exporter(CONFIG["torch_dtype"])
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(g.dtype))
    cos, sin = EmbedND(CONFIG["axes_dim"], CONFIG["theta"])(g, "img_ids")
    x = SingleBlock(CONFIG["hidden"], np.random.default_rng(0))(g, "hidden_states", cos, sin)
    g.op("Identity", x, out="out_sample")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes, "main_graph",
        [info("hidden_states", elem, ["n", CONFIG["hidden"]]), info("img_ids", elem, ["n", 3])],
        [info("out_sample", elem, ["n", CONFIG["hidden"]])], g.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    rng = np.random.default_rng(2)
    ids = np.stack([np.zeros(12), np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)], axis=1)
    return {"hidden_states": rng.normal(size=(12, 16)).astype(np.float16),
            "img_ids": ids.astype(np.float16)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
