"""The end of a language model in half precision: residual, root mean square norm and head, as
an exporter writes them.

https://github.com/ROCm/AMDMIGraphX/issues/2556
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"hidden": 32, "vocabulary": 12, "rms_norm_eps": 1e-5, "massive": (5, 17)}


class Builder:
    def __init__(self, dtype):
        self.dtype = dtype
        self.nodes, self.initializers, self.scope, self.count = [], [], "", {}

    def weight(self, name, array):
        self.initializers.append(numpy_helper.from_array(array.astype(self.dtype), name))
        return name

    def constant(self, value, dtype=None):
        tensor = numpy_helper.from_array(np.array(value, dtype or self.dtype))
        return self.op("Constant", value=tensor)

    def op(self, kind, *inputs, out=None, **attrs):
        key = self.scope + "/" + kind
        n = self.count[key] = self.count.get(key, -1) + 1
        name = key + ("_%d" % n if n else "")
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def rms_norm(b, x, prefix, eps):
    hidden = CONFIG["hidden"]
    squared = b.op("Mul", x, x)
    total = b.op("ReduceSum", squared, b.constant([-1], np.int64), keepdims=0)
    total = b.op("Unsqueeze", total, b.constant([-1], np.int64))
    total = b.op("Expand", total, b.op("Shape", x))
    variance = b.op("Mul", total, b.constant(1 / hidden))
    root = b.op("Sqrt", b.op("Add", variance, b.constant(eps)))
    normed = b.op("Div", x, root)
    return b.op("Mul", b.weight(prefix + ".weight", np.ones(hidden)), normed)


def mlp(b, x, prefix, rng):
    hidden = CONFIG["hidden"]
    up = rng.normal(size=(hidden, 2 * hidden)) * 0.1
    down = rng.normal(size=(2 * hidden, hidden)) * 0.1
    h = b.op("MatMul", x, b.weight(prefix + ".up_proj.weight", up))
    h = b.op("Mul", h, b.op("Sigmoid", h))
    return b.op("MatMul", h, b.weight(prefix + ".down_proj.weight", down))


def model():
    rng = np.random.default_rng(0)
    hidden, vocabulary = CONFIG["hidden"], CONFIG["vocabulary"]
    b = Builder(np.float16)
    table = rng.normal(size=(vocabulary, hidden)) * 0.3
    for channel in CONFIG["massive"]:
        table[1, channel] = 320.0
    b.scope = "/model/embed_tokens"
    x = b.op("Gather", b.weight("model.embed_tokens.weight", table), "input_ids")
    b.scope = "/model/layers.0/mlp"
    x = b.op("Add", x, mlp(b, b.op("Clip", x, b.constant(-4.0), b.constant(4.0)),
                           "model.layers.0.mlp", rng))
    b.scope = "/model/norm"
    x = rms_norm(b, x, "model.norm", CONFIG["rms_norm_eps"])
    b.scope = "/lm_head"
    head = b.weight("lm_head.weight", rng.normal(size=(hidden, vocabulary)) * 0.2)
    b.op("MatMul", x, head, out="logits")
    graph = helper.make_graph(
        b.nodes, "main_graph",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "sequence"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT16, [1, "sequence", vocabulary])],
        b.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 14)])


def inputs():
    return {"input_ids": np.array([[3, 1, 7, 9]], np.int64)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
