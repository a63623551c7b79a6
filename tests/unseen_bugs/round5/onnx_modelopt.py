"""Calibration of a half-precision model: the ranges of its activations become the scales of quantisation nodes.

https://github.com/NVIDIA/Model-Optimizer/issues/18
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


class HistogramCollector:
    """Keeps the symmetric range of every tensor over the batches of the calibration set."""

    def __init__(self, num_bins=128):
        self.num_bins = num_bins
        self.thresholds = {}

    def collect(self, name, data_arr):
        min_value, max_value = data_arr.min(), data_arr.max()
        threshold = max(abs(min_value), abs(max_value))
        if name in self.thresholds:
            threshold = max(threshold, self.thresholds[name])
        self.thresholds[name] = threshold

    def compute_range(self, name):
        threshold = self.thresholds[name]
        return -threshold, threshold


def compute_scale(rmin, rmax, bits=8):
    width = rmax - rmin
    return np.float32(width / (2 ** bits - 2))


class QDQQuantizer:
    def __init__(self, collector):
        self.collector = collector
        self.nodes, self.initializers = [], []

    def quantize_tensor(self, name):
        scale = compute_scale(*self.collector.compute_range(name))
        self.initializers += [numpy_helper.from_array(np.array(scale, np.float32), name + "_scale"),
                              numpy_helper.from_array(np.array(0, np.int8), name + "_zero_point")]
        params = [name + "_scale", name + "_zero_point"]
        self.nodes += [
            helper.make_node("QuantizeLinear", [name] + params, [name + "_q"], name=name + "_QuantizeLinear"),
            helper.make_node("DequantizeLinear", [name + "_q"] + params, [name + "_dq"], name=name + "_DequantizeLinear")]
        return name + "_dq"


def calibration_batches():
    rng = np.random.default_rng(0)
    for _ in range(3):
        yield np.clip(rng.normal(size=(4, 8)) * 15000, -54800, 54800).astype(np.float16)
    yield np.full((1, 8), 54800, np.float16)


def model():
    collector = HistogramCollector()
    for batch in calibration_batches():
        collector.collect("activation", batch)
    q = QDQQuantizer(collector)
    x = q.quantize_tensor("activation")
    weight = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32) * 1e-4
    nodes = q.nodes + [helper.make_node("MatMul", [x, "weight"], ["logits"], name="/head/MatMul")]
    graph = helper.make_graph(
        nodes, "quantized", [helper.make_tensor_value_info("activation", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [4, 3])],
        q.initializers + [numpy_helper.from_array(weight, "weight")])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"activation": (np.random.default_rng(2).normal(size=(4, 8)) * 12000).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
