"""The first convolution of an image classifier with local response normalisation, as a
trace of a torch module gives it.

https://github.com/microsoft/onnxruntime/issues/649
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

SIZE, ALPHA, BETA, K = 5, 0.0001, 0.75, 1.0


class Exporter:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], 10

    def parameter(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, value):
        out = str(self.count)
        self.count += 1
        tensor = numpy_helper.from_array(np.asarray(value))
        self.nodes.append(helper.make_node("Constant", [], [out], name="Constant_" + out, value=tensor))
        return out

    def op(self, kind, *inputs, out=None, **attrs):
        out = out or str(self.count)
        name = "%s_%d" % (kind, self.count)
        self.count += 1
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def local_response_norm(g, x, size, alpha, beta, k):
    div = g.op("Mul", x, x)
    div = g.op("Unsqueeze", div, axes=[1])
    div = g.op("Pad", div, mode="constant", value=0.0,
               pads=[0, 0, size // 2, 0, 0, 0, 0, (size - 1) // 2, 0, 0])
    div = g.op("AveragePool", div, kernel_shape=[size, 1, 1], strides=[1, 1, 1])
    div = g.op("Squeeze", div, axes=[1])
    div = g.op("Mul", div, g.constant(np.float32(alpha)))
    div = g.op("Add", div, g.constant(np.float64(k)))
    div = g.op("Pow", div, g.constant(np.float32(beta)))
    return div


def model():
    rng = np.random.default_rng(0)
    g = Exporter()
    w = g.parameter("features.0.weight", rng.normal(size=(8, 3, 5, 5)).astype(np.float32) * 0.1)
    b = g.parameter("features.0.bias", np.zeros(8, np.float32))
    x = g.op("Conv", "data", w, b, kernel_shape=[5, 5], strides=[2, 2])
    x = g.op("Relu", x)
    div = local_response_norm(g, x, SIZE, ALPHA, BETA, K)
    x = g.op("Div", x, div)
    g.op("MaxPool", x, out="prob", kernel_shape=[2, 2], strides=[2, 2])
    graph = helper.make_graph(
        g.nodes, "torch-jit-export",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 23, 23])],
        [helper.make_tensor_value_info("prob", TensorProto.FLOAT, [1, 8, 5, 5])],
        g.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=6,
                             opset_imports=[helper.make_opsetid("", 10)])


def inputs():
    return {"data": np.random.default_rng(1).normal(size=(1, 3, 23, 23)).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
