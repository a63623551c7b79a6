"""Exports a likelihood estimator whose input is a row of parameters followed by the data, and
prepares the graph for a sampler that runs with 32 bit integers.

https://github.com/lnccbrown/LANfactory/pull/86
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"theta_dim": 3, "x_dim": 2, "hidden": 8, "log_floor": -16.0}


class Graph:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], {}

    def op(self, kind, *inputs, out=None, scope="", **attrs):
        key = scope + "/" + kind
        n = self.count[key] = self.count.get(key, -1) + 1
        name = key + ("_%d" % n if n else "")
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out

    def value(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def slice(self, x, start, stop=None):
        n = self.count.get("/Slice", -1) + 1
        end = np.iinfo(np.int64).max if stop is None else stop
        bounds = [self.value("slice_%d_%s" % (n, k), np.array([v], np.int64))
                  for k, v in (("starts", start), ("ends", end), ("axes", 0))]
        return self.op("Slice", x, *bounds)


def standardize(g, x, name, mean, std):
    centred = g.op("Sub", x, g.value(name + ".mean", np.float32(mean)), scope="/" + name)
    return g.op("Div", centred, g.value(name + ".std", np.float32(std)), scope="/" + name)


def conditional_affine(g, theta, x, rng):
    t, d, h = CONFIG["theta_dim"], CONFIG["x_dim"], CONFIG["hidden"]
    w1 = g.value("net.0.weight", rng.normal(size=(t, h)).astype(np.float32) * 0.5)
    w2 = g.value("net.2.weight", rng.normal(size=(h, 2 * d)).astype(np.float32) * 0.3)
    row = g.op("Unsqueeze", theta, g.value("axis_0", np.array([0], np.int64)), scope="/flow")
    h1 = g.op("Tanh", g.op("MatMul", row, w1, scope="/flow"), scope="/flow")
    shape = g.value("flow.shape", np.array([2, d], np.int64))
    both = g.op("Reshape", g.op("MatMul", h1, w2, scope="/flow"), shape, scope="/flow")
    shift, log_scale = (g.op("Gather", both, g.value("index_%d" % i, np.int64(i)), axis=0,
                             scope="/flow") for i in (0, 1))
    z = g.op("Add", g.op("Mul", x, g.op("Exp", log_scale, scope="/flow"), scope="/flow"), shift,
             scope="/flow")
    return z, log_scale


def export_nle(rng):
    theta_dim, x_dim = CONFIG["theta_dim"], CONFIG["x_dim"]
    g = Graph()
    theta = g.slice("combined", 0, theta_dim)
    x = g.slice("combined", theta_dim)
    x = standardize(g, x, "x_standardize", [0.8, 0.1], [0.5, 1.0])
    theta = standardize(g, theta, "theta_standardize", [0.0] * theta_dim, [1.0] * theta_dim)
    z, log_scale = conditional_affine(g, theta, x, rng)
    square = g.op("Mul", g.op("Mul", z, z), g.value("half", np.float32(-0.5)))
    terms = g.op("Add", square, log_scale)
    total = g.op("ReduceSum", terms, g.value("axes", np.array([0], np.int64)), keepdims=1)
    g.op("Max", total, g.value("floor", np.float32(CONFIG["log_floor"])), out="log_prob")
    graph = helper.make_graph(
        g.nodes, "nle",
        [helper.make_tensor_value_info("combined", TensorProto.FLOAT, [theta_dim + x_dim])],
        [helper.make_tensor_value_info("log_prob", TensorProto.FLOAT, [1])], g.initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


SHAPE_INPUTS = {"Reshape": [1], "Unsqueeze": [1], "ReduceSum": [1]}


def recast_integers(proto):
    fixed = {n.input[i] for n in proto.graph.node for i in SHAPE_INPUTS.get(n.op_type, [])}
    for tensor in proto.graph.initializer:
        if tensor.data_type == TensorProto.INT64 and tensor.name not in fixed:
            array = numpy_helper.to_array(tensor).astype(np.int32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return proto


def model():
    return recast_integers(export_nle(np.random.default_rng(3)))


def inputs():
    return {"combined": np.array([0.7, 1.1, -0.3, 1.9, -1.0], np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
