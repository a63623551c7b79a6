"""Builds the graph of a conformer block of an audio encoder in half precision: two half-step feed
forward layers around a convolution module.

https://github.com/onnxruntime/mobius/pull/58
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"hidden": 8, "ffn": 16, "kernel": 3, "eps": 1e-5, "dtype": np.float16}


class OpBuilder:
    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.nodes, self.initializers, self.scopes, self.count = [], [], [], {}

    def __getattr__(self, kind):
        if not kind[0].isupper():
            raise AttributeError(kind)
        return lambda *inputs, **attrs: self.node(kind, inputs, attrs)

    def node(self, kind, inputs, attrs):
        out = attrs.pop("out", None)
        key = "/".join(self.scopes + [kind])
        n = self.count[key] = self.count.get(key, -1) + 1
        name = key + ("_%d" % n if n else "")
        inputs = [self.literal(v) if isinstance(v, float) else v for v in inputs]
        out = out or name + "_out"
        self.nodes.append(helper.make_node(kind, inputs, [out], name=name, **attrs))
        return out

    def literal(self, value):
        name = "const_%s_%g" % (self.dtype.name, value)
        if name not in {i.name for i in self.initializers}:
            self.initializers.append(numpy_helper.from_array(np.array(value, self.dtype), name))
        return name

    def parameter(self, name, array):
        name = ".".join(self.scopes + [name])
        self.initializers.append(numpy_helper.from_array(array.astype(self.dtype), name))
        return name


class Module:
    def __init__(self, name, rng):
        self.name, self.rng = name, rng

    def __call__(self, op, *args):
        op.scopes.append(self.name)
        result = self.forward(op, *args)
        op.scopes.pop()
        return result

    def linear(self, op, x, name, n_in, n_out):
        return op.MatMul(x, op.parameter(name, self.rng.normal(size=(n_in, n_out)) * 0.3))


class ConformerFeedForward(Module):
    def forward(self, op, x):
        h = self.linear(op, x, "ffw_layer_1.weight", CONFIG["hidden"], CONFIG["ffn"])
        h = op.Mul(h, op.Sigmoid(h))
        h = self.linear(op, h, "ffw_layer_2.weight", CONFIG["ffn"], CONFIG["hidden"])
        half = op.Constant(value_float=0.5)
        return op.Add(x, op.Mul(h, half))


class ConformerConv(Module):
    def forward(self, op, x):
        h = op.Transpose(x, perm=[0, 2, 1])
        weight = self.rng.normal(size=(CONFIG["hidden"], 1, CONFIG["kernel"])) * 0.3
        h = op.Conv(h, op.parameter("depthwise.weight", weight), group=CONFIG["hidden"],
                    pads=[1, 1], kernel_shape=[CONFIG["kernel"]])
        return op.Add(x, op.Transpose(h, perm=[0, 2, 1]))


class RMSNorm(Module):
    def forward(self, op, x):
        variance = op.ReduceMean(op.Mul(x, x), axes=[-1])
        root = op.Sqrt(op.Add(variance, CONFIG["eps"]))
        return op.Mul(op.Div(x, root), op.parameter("weight", np.ones(CONFIG["hidden"])))


def model():
    rng = np.random.default_rng(0)
    op = OpBuilder(CONFIG["dtype"])
    x = ConformerFeedForward("ffw_start", rng)(op, "features")
    x = ConformerConv("lconv", rng)(op, x)
    x = ConformerFeedForward("ffw_end", rng)(op, x)
    x = RMSNorm("norm", rng)(op, x)
    op.Identity(x, out="encoded")
    elem = helper.np_dtype_to_tensor_dtype(op.dtype)
    shape = [1, "time", CONFIG["hidden"]]
    graph = helper.make_graph(op.nodes, "audio_encoder",
                              [helper.make_tensor_value_info("features", elem, shape)],
                              [helper.make_tensor_value_info("encoded", elem, shape)],
                              op.initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 16)])


def inputs():
    return {"features": np.random.default_rng(1).normal(size=(1, 6, 8)).astype(np.float16)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
