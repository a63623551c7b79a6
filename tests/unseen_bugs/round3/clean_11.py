"""A small tagger as an exporter writes it: token and position embeddings, an attention layer with a
padding mask, and the best tag per token."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"vocab": 30, "positions": 16, "hidden": 8, "tags": 5, "masked": -10000.0}


class Exporter:
    def __init__(self, rng):
        self.rng = rng
        self.nodes, self.initializers, self.count = [], [], {}

    def weight(self, name, *shape):
        array = (self.rng.normal(size=shape) * 0.3).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def const(self, value, dtype):
        return self.op("", "Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def op(self, scope, kind, *inputs, out=None, **attrs):
        key = scope + "/" + kind
        n = self.count[key] = self.count.get(key, -1) + 1
        name = key + ("_%d" % n if n else "")
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def embeddings(e):
    s = "/embeddings"
    shape = e.op(s, "Shape", "input_ids")
    length = e.op(s, "Gather", shape, e.const(1, np.int64), axis=0)
    positions = e.op(s, "Range", e.const(0, np.int64), length, e.const(1, np.int64))
    words = e.op(s, "Gather", e.weight("word", CONFIG["vocab"], CONFIG["hidden"]), "input_ids")
    table = e.weight("position", CONFIG["positions"], CONFIG["hidden"])
    return e.op(s, "Add", words, e.op(s, "Gather", table, positions))


def extended_mask(e):
    s = "/mask"
    mask = e.op(s, "Cast", "attention_mask", to=TensorProto.FLOAT)
    mask = e.op(s, "Unsqueeze", mask, e.const([1], np.int64))
    inverse = e.op(s, "Sub", e.const(1.0, np.float32), mask)
    return e.op(s, "Mul", inverse, e.const(CONFIG["masked"], np.float32))


def attention(e, x, mask):
    s, h = "/layer.0/attention", CONFIG["hidden"]
    q, k, v = (e.op(s, "MatMul", x, e.weight(n, h, h)) for n in ("query", "key", "value"))
    scores = e.op(s, "MatMul", q, e.op(s, "Transpose", k, perm=[0, 2, 1]))
    scores = e.op(s, "Div", scores, e.const(h ** 0.5, np.float32))
    weights = e.op(s, "Softmax", e.op(s, "Add", scores, mask), axis=-1)
    return e.op(s, "Add", x, e.op(s, "MatMul", weights, v))


def model():
    e = Exporter(np.random.default_rng(0))
    x = attention(e, embeddings(e), extended_mask(e))
    e.op("/classifier", "MatMul", x, e.weight("classifier", CONFIG["hidden"], CONFIG["tags"]), out="logits")
    e.op("", "ArgMax", "logits", axis=-1, keepdims=0, out="tags")
    info, shape = helper.make_tensor_value_info, ["batch", "length"]
    graph = helper.make_graph(
        e.nodes, "main_graph",
        [info(n, TensorProto.INT64, shape) for n in ("input_ids", "attention_mask")],
        [info("logits", TensorProto.FLOAT, shape + [CONFIG["tags"]]),
         info("tags", TensorProto.INT64, shape)], e.initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    ids = np.random.default_rng(1).integers(1, 30, size=(2, 6))
    mask = np.ones((2, 6), np.int64)
    mask[1, 4:] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}
