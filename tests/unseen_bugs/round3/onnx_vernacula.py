"""Converts the front end of a speaker model to half precision: features are subsampled by strided
convolutions, and the number of valid frames is computed beside them.

https://github.com/christopherthompson81/vernacula/pull/175
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"features": 4, "channels": 3, "layers": 2, "kernel": 3, "stride": 2, "padding": 1,
          "block_list": ("ReduceSum", "Resize"), "keep_io_types": True}


class Exporter:
    def __init__(self):
        self.nodes, self.initializers, self.count = [], [], {}

    def weight(self, name, array):
        self.initializers.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def constant(self, scope, value, dtype=np.float32):
        return self.op(scope, "Constant", value=numpy_helper.from_array(np.asarray(value, dtype)))

    def op(self, scope, kind, *inputs, out=None, **attrs):
        key = "/%s/%s" % (scope, kind)
        n = self.count[key] = self.count.get(key, -1) + 1
        name = key + ("_%d" % n if n else "")
        out = out or name + "_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=name, **attrs))
        return out


def calc_length(b, lengths):
    pad, kernel, stride = CONFIG["padding"], CONFIG["kernel"], CONFIG["stride"]
    scope = "pre_encode"
    axis = b.constant(scope, [1], np.int64)
    lengths = b.op(scope, "Cast", lengths, to=TensorProto.FLOAT)
    lengths = b.op(scope, "Unsqueeze", lengths, axis)
    for _ in range(CONFIG["layers"]):
        lengths = b.op(scope, "Add", lengths, b.constant(scope, 2 * pad - kernel))
        lengths = b.op(scope, "Div", lengths, b.constant(scope, stride))
        lengths = b.op(scope, "Floor", b.op(scope, "Add", lengths, b.constant(scope, 1.0)))
    return b.op(scope, "Squeeze", b.op(scope, "Cast", lengths, to=TensorProto.INT64), axis)


def subsample(b, x, rng):
    for i in range(CONFIG["layers"]):
        n_in = CONFIG["channels"] if i else CONFIG["features"]
        w = rng.normal(size=(CONFIG["channels"], n_in, CONFIG["kernel"])) * 0.4
        x = b.op("pre_encode/conv.%d" % i, "Conv", x, b.weight("conv.%d.weight" % i, w),
                 strides=[CONFIG["stride"]], pads=[CONFIG["padding"]] * 2)
        x = b.op("pre_encode/conv.%d" % i, "Relu", x)
    return b.op("pre_encode", "Identity", x, out="embeddings")


def export():
    b = Exporter()
    subsample(b, "processed_signal", np.random.default_rng(6))
    lengths = calc_length(b, "processed_signal_length")
    b.op("pre_encode", "Identity", lengths, out="lengths")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        b.nodes, "main_graph",
        [info("processed_signal", TensorProto.FLOAT, [1, CONFIG["features"], "time"]),
         info("processed_signal_length", TensorProto.INT64, ["batch"])],
        [info("embeddings", TensorProto.FLOAT, [1, CONFIG["channels"], "frames"]),
         info("lengths", TensorProto.INT64, ["batch"])], b.initializers)
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def to_half(tensor):
    if tensor.data_type == TensorProto.FLOAT:
        array = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float16), tensor.name))


def convert_float_to_float16(model, op_block_list=(), node_block_list=()):
    graph = model.graph
    for tensor in graph.initializer:
        to_half(tensor)
    for node in graph.node:
        if node.op_type in op_block_list or node.name in node_block_list:
            continue
        for attr in node.attribute:
            if attr.name == "to" and attr.i == TensorProto.FLOAT:
                attr.i = TensorProto.FLOAT16
            elif attr.name == "value":
                to_half(attr.t)
    for value in list(graph.input) + list(graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def model():
    return convert_float_to_float16(export(), CONFIG["block_list"])


def inputs():
    signal = np.random.default_rng(7).normal(size=(1, CONFIG["features"], 16))
    return {"processed_signal": signal.astype(np.float16),
            "processed_signal_length": np.array([16, 999, 4097, 8193, 12801], np.int64)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
