"""The head of a segmentation network: a non-local block whose pairwise weights are scaled by the
size of the embedding, written down operator by operator as a tracer does.

https://github.com/open-mmlab/mmsegmentation/pull/1161
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"in_channels": 6, "reduction": 2, "use_scale": True, "temperature": 0.05, "classes": 3}


class Tracer:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 40

    def op(self, kind, *inputs, out=None, **attrs):
        out = out or str(self.count)
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name="%s_%d" % (kind, self.count), **attrs))
        self.count += 1
        return out

    def parameter(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def constant(self, value):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value)))


class TracedInt:
    """A size that is read from a tensor; arithmetic with it is traced."""

    def __init__(self, g, name):
        self.g, self.name = g, name

    def __pow__(self, exponent):
        base = self.g.op("Cast", self.name, to=TensorProto.FLOAT)
        power = self.g.op("Pow", base, self.g.constant(np.float64(exponent)))
        return TracedInt(self.g, self.g.op("Cast", power, to=TensorProto.INT64))


def size(g, x, dim):
    return TracedInt(g, g.op("Gather", g.op("Shape", x), g.constant(np.int64(dim)), axis=0))


def div(g, x, y):
    return g.op("Div", x, y.name if isinstance(y, TracedInt) else y)


def conv1x1(g, x, name, rng, out_channels, in_channels):
    weight = g.parameter(name + ".weight", rng.normal(size=(out_channels, in_channels, 1, 1)) * 0.5)
    return g.op("Conv", x, weight, kernel_shape=[1, 1])


def flatten(g, x, channels, transpose):
    x = g.op("Reshape", x, g.constant(np.array([0, channels, -1])))
    return g.op("Transpose", x, perm=[0, 2, 1]) if transpose else x


def embedded_gaussian(g, theta_x, phi_x, config):
    pairwise_weight = g.op("MatMul", theta_x, phi_x)
    if config["use_scale"]:
        pairwise_weight = div(g, pairwise_weight, size(g, theta_x, -1) ** 0.5)
    pairwise_weight = div(g, pairwise_weight, g.constant(np.float32(config["temperature"])))
    return g.op("Softmax", pairwise_weight, axis=-1)


def disentangled_non_local(g, x, config, rng):
    channels = config["in_channels"]
    inter = channels // config["reduction"]
    g_x = flatten(g, conv1x1(g, x, "dnl.g", rng, inter, channels), inter, True)
    theta_x = flatten(g, conv1x1(g, x, "dnl.theta", rng, inter, channels), inter, True)
    phi_x = flatten(g, conv1x1(g, x, "dnl.phi", rng, inter, channels), inter, False)
    theta_x = g.op("Sub", theta_x, g.op("ReduceMean", theta_x, axes=[-2], keepdims=1))
    phi_x = g.op("Sub", phi_x, g.op("ReduceMean", phi_x, axes=[-1], keepdims=1))
    y = g.op("MatMul", embedded_gaussian(g, theta_x, phi_x, config), g_x)
    y = g.op("Transpose", y, perm=[0, 2, 1])
    y = g.op("Reshape", y, g.constant(np.array([1, inter, 4, 5])))
    mask = flatten(g, conv1x1(g, x, "dnl.conv_mask", rng, 1, channels), 1, False)
    context = g.op("MatMul", g.op("Softmax", mask, axis=-1), g_x)
    context = g.op("Reshape", context, g.constant(np.array([1, inter, 1, 1])))
    y = conv1x1(g, g.op("Add", y, context), "dnl.conv_out", rng, channels, inter)
    return g.op("Add", x, y)


def model():
    g, rng = Tracer(), np.random.default_rng(3)
    x = disentangled_non_local(g, "features", CONFIG, rng)
    weight = g.parameter("conv_seg.weight", rng.normal(size=(CONFIG["classes"], CONFIG["in_channels"], 1, 1)) * 0.4)
    g.op("Conv", x, weight, kernel_shape=[1, 1], out="logits")
    graph = helper.make_graph(
        g.nodes, "torch-jit-export",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, CONFIG["in_channels"], 4, 5])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CONFIG["classes"], 4, 5])],
        g.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 12)])


def inputs():
    return {"features": np.random.default_rng(4).normal(size=(1, 6, 4, 5)).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
