"""A simplifier folds the batch normalisation of a half-precision model into the convolution before it.

https://github.com/inisis/OnnxSlim/pull/221
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def attribute(node, name, default):
    for a in node.attribute:
        if a.name == name:
            return helper.get_attribute_value(a)
    return default


class ConvBatchNormMatcher:
    def __init__(self, graph):
        self.graph = graph
        self.values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}

    def match(self):
        makers = {n.output[0]: n for n in self.graph.node}
        for node in self.graph.node:
            if node.op_type == "BatchNormalization" and makers[node.input[0]].op_type == "Conv":
                yield makers[node.input[0]], node

    def rewrite(self, conv, bn):
        weight = self.values[conv.input[1]]
        scale, bias, mean, var = (self.values[n] for n in bn.input[1:5])
        eps = attribute(bn, "epsilon", 1e-5)
        conv_bias = self.values[conv.input[2]] if len(conv.input) > 2 else np.zeros_like(mean)
        var_rsqrt = scale / np.sqrt(var + eps)
        conv_w = weight * var_rsqrt.reshape([-1] + [1] * (weight.ndim - 1))
        conv_b = (conv_bias - mean) * var_rsqrt + bias
        out = bn.output[0]
        inits = [numpy_helper.from_array(conv_w, out + "_weight"), numpy_helper.from_array(conv_b, out + "_bias")]
        fused = helper.make_node("Conv", [conv.input[0], out + "_weight", out + "_bias"], [out], name=conv.name)
        fused.attribute.extend(conv.attribute)
        return fused, inits


def slim(model):
    matcher, skipped, nodes, inits = ConvBatchNormMatcher(model.graph), set(), {}, []
    for conv, bn in matcher.match():
        fused, extra = matcher.rewrite(conv, bn)
        nodes[bn.output[0]] = fused
        skipped.add(conv.output[0])
        inits += extra
    kept = [nodes.get(n.output[0], n) for n in model.graph.node if n.output[0] not in skipped]
    used = {x for n in kept for x in n.input}
    inits += [i for i in model.graph.initializer if i.name in used]
    graph = helper.make_graph(kept, model.graph.name, list(model.graph.input), list(model.graph.output), inits)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)])


def exported():
    rng = np.random.default_rng(0)
    half = {"conv.weight": rng.normal(size=(6, 3, 3, 3)) * 0.2, "bn.weight": rng.uniform(0.5, 1.5, 6),
            "bn.bias": rng.normal(size=6), "bn.running_mean": rng.normal(size=6), "bn.running_var": rng.uniform(0.5, 2, 6)}
    half["conv.weight"][4] = 0
    half["bn.running_mean"][4] = half["bn.running_var"][4] = 0
    nodes = [helper.make_node("Conv", ["images", "conv.weight"], ["/conv/Conv_output_0"], name="/conv/Conv", pads=[1] * 4),
             helper.make_node("BatchNormalization", ["/conv/Conv_output_0", "bn.weight", "bn.bias", "bn.running_mean",
                              "bn.running_var"], ["/bn/BatchNormalization_output_0"], name="/bn/BatchNormalization", epsilon=1e-8),
             helper.make_node("Relu", ["/bn/BatchNormalization_output_0"], ["features"], name="/act/Relu")]
    graph = helper.make_graph(
        nodes, "main_graph", [helper.make_tensor_value_info("images", TensorProto.FLOAT16, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT16, [1, 6, 8, 8])],
        [numpy_helper.from_array(v.astype(np.float16), k) for k, v in half.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14)])


def model():
    return slim(exported())


def inputs():
    return {"images": np.random.default_rng(1).uniform(size=(1, 3, 8, 8)).astype(np.float16)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
