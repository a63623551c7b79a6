"""The end of a language model as an exporter writes it: the last layer, the choice of the
positions for which logits are wanted, the norm and the head.

https://github.com/wangzhaode/llm-export/issues/76
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"hidden_size": 16, "vocab_size": 24, "rms_norm_eps": 1e-6, "opset": 15}


class Exporter:
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.nodes, self.initializers, self.inputs = [], [], []
        self.scope, self.count = "", {}

    def add_input(self, name, dtype, shape):
        elem = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, elem, shape))
        return name

    def weight(self, name, shape, scale=0.25):
        values = (self.rng.normal(size=shape) * scale).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, value):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def op(self, kind, *inputs, out=None, **attrs):
        n = self.count[self.scope + kind] = self.count.get(self.scope + kind, -1) + 1
        name = "%s/%s%s" % (self.scope, kind, "_%d" % n if n else "")
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def slice_from(g, x, start, axis):
    end = g.constant(np.array([np.iinfo(np.int64).max]))
    return g.op("Slice", x, start, end, g.constant(np.array([axis])))


def rms_norm(g, x, name):
    variance = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
    root = g.op("Sqrt", g.op("Add", variance, g.constant(np.float32(CONFIG["rms_norm_eps"]))))
    return g.op("Mul", g.op("Div", x, root), g.weight(name + ".weight", (CONFIG["hidden_size"],)))


def mlp(g, x, name):
    h = CONFIG["hidden_size"]
    up = g.op("MatMul", x, g.weight(name + ".up_proj.weight", (h, 2 * h)))
    up = g.op("Mul", up, g.op("Sigmoid", up))
    return g.op("Add", x, g.op("MatMul", up, g.weight(name + ".down_proj.weight", (2 * h, h))))


def add_positions(g, x, position_ids):
    table = g.weight("model.embed_positions.weight", (64, CONFIG["hidden_size"]))
    return g.op("Add", x, g.op("Gather", table, position_ids))


def model():
    g = Exporter()
    hidden_states = g.add_input("hidden_states", np.float32, ["seq_len", CONFIG["hidden_size"]])
    position_ids = g.add_input("position_ids", np.int32, ["seq_len"])
    logits_index = g.add_input("logits_index", np.int32, [1])
    g.scope = "/model/layers.27"
    x = add_positions(g, hidden_states, position_ids)
    x = mlp(g, x, "model.layers.27.mlp")
    g.scope = "/lm"
    x = slice_from(g, x, logits_index, 0)
    g.scope = "/lm/norm"
    x = rms_norm(g, x, "model.norm")
    g.scope = "/lm/lm_head"
    g.op("MatMul", x, g.weight("lm_head.weight", (CONFIG["hidden_size"], CONFIG["vocab_size"])),
         out="logits")
    graph = helper.make_graph(
        g.nodes, "main_graph", g.inputs,
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", CONFIG["vocab_size"]])],
        g.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", CONFIG["opset"])])


def inputs():
    rng = np.random.default_rng(1)
    return {"hidden_states": rng.normal(size=(7, 16)).astype(np.float32),
            "position_ids": np.arange(7, dtype=np.int32), "logits_index": np.array([-1], np.int32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
