"""A small denoiser: an encoder, a decoder that is scaled up, a skip connection; built in single
precision and converted to half precision for delivery.

https://github.com/GPUOpen-LibrariesAndSDKs/RadeonImageFilter/issues/18
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"channels": 3, "features": 8, "levels": 2, "half": True}


class UNet:
    def __init__(self, config):
        self.rng = np.random.default_rng(0)
        self.nodes, self.initializers, self.config = [], [], config

    def weight(self, name, shape, scale=0.2):
        values = (self.rng.normal(size=shape) * scale).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def tensor(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.array(values, np.float32), name))
        return name

    def add(self, kind, inputs, name, **attrs):
        self.nodes.append(helper.make_node(kind, inputs, [name + ":0"], name=name, **attrs))
        return name + ":0"

    def conv(self, x, name, cin, cout):
        w = self.weight(name + "/kernel", (cout, cin, 3, 3))
        b = self.weight(name + "/bias", (cout,), 0.01)
        x = self.add("Conv", [x, w, b], name + "/Conv2D", pads=[1, 1, 1, 1])
        return self.add("Relu", [x], name + "/Relu")

    def upsample(self, x, name):
        scales = self.tensor(name + "/scales", [1, 1, 2, 2])
        return self.add("Resize", [x, "", scales], name + "/Resize", mode="nearest")

    def build(self, image):
        f, skips, x, cin = self.config["features"], [], image, self.config["channels"]
        for i in range(self.config["levels"]):
            x = self.conv(x, "enc_conv%d" % i, cin, f)
            skips.append(x)
            x = self.add("MaxPool", [x], "pool%d" % i, kernel_shape=[2, 2], strides=[2, 2])
            cin = f
        for i in reversed(range(self.config["levels"])):
            x = self.upsample(x, "upsample%d" % i)
            x = self.add("Concat", [x, skips[i]], "concat%d" % i, axis=1)
            x = self.conv(x, "dec_conv%d" % i, 2 * f, f)
        return self.conv(x, "dec_out", f, self.config["channels"])


def convert_to_half(graph):
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for value in list(graph.input) + list(graph.output) + list(graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return graph


def model():
    net = UNet(CONFIG)
    out = net.build("color")
    net.nodes[-1].output[0] = out = "output"
    shape = [1, CONFIG["channels"], "h", "w"]
    graph = helper.make_graph(
        net.nodes, "denoise_c3_ldr",
        [helper.make_tensor_value_info("color", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(out, TensorProto.FLOAT, shape)], net.initializers)
    if CONFIG["half"]:
        graph = convert_to_half(graph)
    return helper.make_model(graph, producer_name="tf2onnx", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"color": np.random.default_rng(2).random((1, 3, 16, 24)).astype(np.float16)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
