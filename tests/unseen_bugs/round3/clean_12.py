"""The end of an enhancement network: float pixels are rounded and saturated to 8 bit, and the share
of clipped pixels is counted in integers."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"channels": 3, "size": (6, 8), "gain": 1.4}


class Graph:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], {}

    def value(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind, *inputs, out=None, **attrs):
        n = self.count[kind] = self.count.get(kind, -1) + 1
        name = "%s_%d" % (kind, n)
        out = out or name + "_out"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def enhance(g, x, rng):
    c = CONFIG["channels"]
    kernel = np.zeros((c, c, 3, 3), np.float32)
    kernel[np.arange(c), np.arange(c)] = rng.normal(size=(3, 3)) * 0.02
    kernel[np.arange(c), np.arange(c), 1, 1] += CONFIG["gain"]
    y = g.op("Conv", x, g.value("kernel", kernel), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    return g.op("Add", y, g.value("bias", np.array([2, 0, -2], np.float32).reshape(1, 3, 1, 1)))


def to_bytes(g, y):
    low, high = g.value("low", np.float32(0)), g.value("high", np.float32(255))
    return g.op("Cast", g.op("Clip", g.op("Round", y), low, high), out="image", to=TensorProto.UINT8)


def clipped_share(g, y):
    over = g.op("Greater", y, g.value("limit", np.float32(255)))
    under = g.op("Less", y, g.value("zero", np.float32(0)))
    flags = g.op("Cast", g.op("Or", over, under), to=TensorProto.INT64)
    count = g.op("ReduceSum", flags, g.value("axes", np.array([1, 2, 3], np.int64)), keepdims=0)
    pixels = g.op("Div", g.op("Size", y), g.op("Gather", g.op("Shape", y), g.value("first", np.int64(0))))
    g.op("Identity", count, out="clipped")
    return g.op("Div", g.op("Cast", count, to=TensorProto.FLOAT),
                g.op("Cast", pixels, to=TensorProto.FLOAT), out="share")


def model():
    g = Graph()
    x = g.op("Cast", "pixels", to=TensorProto.FLOAT)
    y = enhance(g, x, np.random.default_rng(0))
    to_bytes(g, y)
    clipped_share(g, y)
    info = helper.make_tensor_value_info
    shape = ["batch", CONFIG["channels"], *CONFIG["size"]]
    graph = helper.make_graph(
        g.nodes, "enhance", [info("pixels", TensorProto.UINT8, shape)],
        [info("image", TensorProto.UINT8, shape), info("clipped", TensorProto.INT64, ["batch"]),
         info("share", TensorProto.FLOAT, ["batch"])], g.initializers)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    pixels = np.random.default_rng(1).integers(0, 256, size=(2, 3, 6, 8))
    return {"pixels": pixels.astype(np.uint8)}
