"""One step of a text decoder with a cache of keys and values, made half precision by a script.

https://github.com/ailia-ai/ailia-models/issues/1736
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"width": 8, "vocab": 13, "context": 6, "mask": -1e4}
BLOCK = "/blocks.0"


class Graph:
    def __init__(self, seed):
        self.nodes, self.initializers = [], []
        self.rng = np.random.default_rng(seed)

    def weight(self, name, *shape):
        self.initializers.append(numpy_helper.from_array(
            (self.rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32), name))
        return name

    def const(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def op(self, kind, inputs, path, **attrs):
        out = attrs.pop("out", path + "/" + kind + "_output_0")
        self.nodes.append(helper.make_node(kind, inputs, [out], name=path + "/" + kind, **attrs))
        return out


def decoder(config):
    g, w, c = Graph(0), config["width"], config["context"]
    x = g.op("Gather", [g.weight("token_embedding.weight", config["vocab"], w), "tokens"], "/token_embedding")
    position = g.op("Gather", [g.weight("positional_embedding", c, w), "offset"], "/positional_embedding")
    x = g.op("Add", [x, position], "")
    q = g.op("MatMul", [x, g.weight("query.weight", w, w)], BLOCK + "/attn/query")
    k = g.op("MatMul", [x, g.weight("key.weight", w, w)], BLOCK + "/attn/key")
    v = g.op("MatMul", [x, g.weight("value.weight", w, w)], BLOCK + "/attn/value")
    keys = g.op("Concat", ["k_cache", k], BLOCK + "/attn/k", axis=1, out="k_cache_out")
    values = g.op("Concat", ["v_cache", v], BLOCK + "/attn/v", axis=1, out="v_cache_out")
    kt = g.op("Transpose", [keys], BLOCK + "/attn", perm=[0, 2, 1])
    scores = g.op("MatMul", [q, kt], BLOCK + "/attn")
    hidden = g.op("Less", [g.const("positions", np.arange(c)), "first"], BLOCK + "/mask")
    hidden = g.op("Cast", [hidden], BLOCK + "/mask", to=TensorProto.FLOAT)
    bias = g.op("Mul", [hidden, g.const("mask_value", np.float32(config["mask"]))], BLOCK + "/mask")
    scores = g.op("Add", [scores, bias], BLOCK + "/attn")
    weights = g.op("Softmax", [scores], BLOCK + "/attn", axis=-1)
    x = g.op("Add", [x, g.op("MatMul", [weights, values], BLOCK + "/attn/out")], BLOCK)
    g.op("MatMul", [x, g.weight("logits.weight", w, config["vocab"])], "/logits", out="logits")
    io = helper.make_tensor_value_info
    cache = [1, c - 1, w]
    graph = helper.make_graph(
        g.nodes, "decoder",
        [io("tokens", TensorProto.INT64, [1, 1]), io("offset", TensorProto.INT64, [1]),
         io("first", TensorProto.INT64, [1]), io("k_cache", TensorProto.FLOAT, cache),
         io("v_cache", TensorProto.FLOAT, cache)],
        [io("logits", TensorProto.FLOAT, [1, 1, config["vocab"]]),
         io("k_cache_out", TensorProto.FLOAT, [1, c, w]), io("v_cache_out", TensorProto.FLOAT, [1, c, w])],
        g.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def rename(names, old, new):
    for i, name in enumerate(names):
        if name == old:
            names[i] = new


def convert_float_to_float16(model):
    graph, before, after = model.graph, [], []
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name))
    for value in graph.input:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            inner = value.name + "_fp16"
            for node in graph.node:
                rename(node.input, value.name, inner)
            before.append(helper.make_node("Cast", [value.name], [inner], name=inner + "_cast", to=TensorProto.FLOAT16))
    for value in graph.output:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            inner = value.name + "_fp16"
            for node in graph.node:
                rename(node.output, value.name, inner)
                rename(node.input, value.name, inner)
            after.append(helper.make_node("Cast", [inner], [value.name], name=inner + "_cast", to=TensorProto.FLOAT))
    nodes = before + list(graph.node) + after
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def model():
    return convert_float_to_float16(decoder(CONFIG))


def inputs():
    rng = np.random.default_rng(1)
    cache = (1, CONFIG["context"] - 1, CONFIG["width"])
    return {"tokens": np.array([[4]]), "offset": np.array([5]), "first": np.array([2]),
            "k_cache": rng.normal(size=cache).astype(np.float32),
            "v_cache": rng.normal(size=cache).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
