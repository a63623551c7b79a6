"""Rotary embeddings of queries for the positions that are given, compressed to half precision.

https://github.com/openvinotoolkit/openvino/pull/34716
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"head_dim": 16, "heads": 2, "rope_theta": 1000000.0, "keep_float32": ["/norm/"]}


class Builder:
    def __init__(self):
        self.nodes, self.initializers, self.scope, self.count = [], [], "", {}

    def tensor(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def op(self, kind, *inputs, out=None, **attrs):
        n = self.count[self.scope + kind] = self.count.get(self.scope + kind, -1) + 1
        name = "%s%s%s" % (self.scope, kind, "_%d" % n if n else "")
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def rotary_embedding(b, position_ids):
    b.scope = "/model/rotary_emb/"
    half = CONFIG["head_dim"] // 2
    inv_freq = 1.0 / CONFIG["rope_theta"] ** (np.arange(half) / half)
    inv_freq = b.tensor("rotary_emb.inv_freq", inv_freq.astype(np.float32)[None])
    positions = b.op("Unsqueeze", position_ids, b.tensor("axes", np.array([1])))
    positions = b.op("Cast", positions, to=TensorProto.FLOAT)
    positions = b.op("Reshape", positions, b.tensor("column", np.array([-1, 1])))
    freqs = b.op("MatMul", positions, inv_freq)
    emb = b.op("Concat", freqs, freqs, axis=-1)
    return b.op("Cos", emb), b.op("Sin", emb)


def apply_rotary(b, q, cos, sin):
    b.scope = "/model/layers.0/self_attn/"
    half = b.tensor("half", np.array([CONFIG["head_dim"] // 2] * 2))
    first, second = "first_half", "second_half"
    b.nodes.append(helper.make_node("Split", [q, half], [first, second], name=b.scope + "Split", axis=-1))
    rotated = b.op("Concat", b.op("Neg", second), first, axis=-1)
    return b.op("Add", b.op("Mul", q, cos), b.op("Mul", rotated, sin), out="q_embed")


def l2_norm(b, x):
    b.scope = "/model/layers.0/norm/"
    total = b.op("ReduceSum", b.op("Mul", x, x), b.tensor("last", np.array([-1])), keepdims=1)
    root = b.op("Sqrt", b.op("Add", total, b.tensor("norm.eps", np.float32(1e-6))))
    return b.op("Div", x, root)


def compress_to_half(b, inputs, config):
    kept = lambda node: any(part in node.name for part in config["keep_float32"])
    floats = {i.name for i in b.initializers if i.data_type == TensorProto.FLOAT}
    single = {i for node in b.nodes if kept(node) for i in node.input} & floats
    for tensor in b.initializers:
        if tensor.name in floats - single:
            values = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    nodes, is_float, is_single = [], set(floats) | set(inputs), set(single)
    for node in b.nodes:
        if not kept(node) and node.op_type == "Cast" and node.attribute[0].i == TensorProto.FLOAT:
            node.attribute[0].i = TensorProto.FLOAT16
        for i, name in enumerate(node.input):
            if name in is_float and (name in is_single) != kept(node):
                to = TensorProto.FLOAT if kept(node) else TensorProto.FLOAT16
                cast = "%s/compress_%d" % (node.name, i)
                nodes.append(helper.make_node("Cast", [name], [cast], name=cast, to=to))
                node.input[i] = cast
        if node.op_type == "Cast" or any(i in is_float or "/compress_" in i for i in node.input):
            is_float.update(node.output)
            is_single.update(node.output if kept(node) else ())
        nodes.append(node)
    return nodes


def model():
    b = Builder()
    cos, sin = rotary_embedding(b, "position_ids")
    apply_rotary(b, l2_norm(b, "query"), cos, sin)
    nodes = compress_to_half(b, ["query"], CONFIG)
    shape = [CONFIG["heads"], "sequence", CONFIG["head_dim"]]
    graph = helper.make_graph(
        nodes, "rope", [helper.make_tensor_value_info("query", TensorProto.FLOAT16, shape),
                        helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["sequence"])],
        [helper.make_tensor_value_info("q_embed", TensorProto.FLOAT16, shape)], b.initializers)
    return helper.make_model(graph, producer_name="optimum", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 14)])


def inputs():
    query = np.random.default_rng(1).normal(size=(2, 5, 16)).astype(np.float16)
    return {"query": query, "position_ids": np.array([3, 2047, 4173, 4174, 8191])}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
