"""A quantised keyword spotter as ONNX: samples of 16 bits become float, go through a convolution
in bytes between Quantize and Dequantize, and the scores come out as float with the index."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"samples": 64, "channels": 6, "kernel": 8, "stride": 4, "words": 4}


def quantise(array, scale):
    return np.clip(np.rint(array / scale), -127, 127).astype(np.int8)


class Exporter:
    def __init__(self):
        self.nodes, self.initializers = [], []

    def add(self, **arrays):
        self.initializers += [numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items()]

    def node(self, kind, inputs, output, **attrs):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output + "_" + kind, **attrs))
        return output

    def fake_quant(self, x, name, scale, zero_point):
        self.add(**{name + "_scale": np.float32(scale), name + "_zero_point": np.uint8(zero_point)})
        parameters = [name + "_scale", name + "_zero_point"]
        q = self.node("QuantizeLinear", [x] + parameters, name + "_q")
        return self.node("DequantizeLinear", [q] + parameters, name + "_dq")

    def weight(self, name, array, axis):
        axes = tuple(i for i in range(array.ndim) if i != axis)
        scale = (np.abs(array).max(axis=axes) / 127).astype(np.float32)
        shape = [-1 if i == axis else 1 for i in range(array.ndim)]
        self.add(**{name: quantise(array, scale.reshape(shape)), name + "_scale": scale,
                    name + "_zero_point": np.zeros(len(scale), np.int8)})
        return self.node("DequantizeLinear", [name, name + "_scale", name + "_zero_point"], name + "_dq", axis=axis)


def model():
    e, rng, c = Exporter(), np.random.default_rng(1), CONFIG
    e.add(conv_bias=(rng.normal(size=c["channels"]) * 0.1).astype(np.float32), full_scale=np.float32(32768),
          mean=np.float32(0.02), std=np.float32(0.4))
    x = e.node("Cast", ["samples"], "samples_float", to=TensorProto.FLOAT)
    x = e.node("Div", [x, "full_scale"], "wave")
    x = e.node("Div", [e.node("Sub", [x, "mean"], "centred"), "std"], "normed")
    x = e.fake_quant(x, "normed_quant", 0.02, 128)
    kernel = rng.normal(size=(c["channels"], 1, c["kernel"])) * 0.3
    x = e.node("Conv", [x, e.weight("conv_weight", kernel, 0), "conv_bias"], "conv",
               kernel_shape=[c["kernel"]], strides=[c["stride"]])
    x = e.fake_quant(e.node("Relu", [x], "active"), "active_quant", 0.015, 0)
    x = e.node("ReduceMean", [x], "pooled", axes=[2], keepdims=0)
    head = rng.normal(size=(c["channels"], c["words"]))
    x = e.node("MatMul", [x, e.weight("head_weight", head, 1)], "logits")
    e.node("Softmax", [x], "probability", axis=-1)
    e.node("ArgMax", [x], "word", axis=-1, keepdims=0)
    graph = helper.make_graph(
        e.nodes, "spotter",
        [helper.make_tensor_value_info("samples", TensorProto.INT16, [2, 1, c["samples"]])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, [2, c["words"]]),
         helper.make_tensor_value_info("word", TensorProto.INT64, [2])], e.initializers)
    return helper.make_model(graph, producer_name="clean", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    rng = np.random.default_rng(2)
    t = np.arange(CONFIG["samples"])
    wave = np.stack([np.sin(t / 3), np.sin(t / 9 + 1)])[:, None] * 12000 + rng.normal(0, 300, (2, 1, len(t)))
    return {"samples": np.rint(wave).astype(np.int16)}
