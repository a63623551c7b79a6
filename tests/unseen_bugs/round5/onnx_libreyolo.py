"""Static quantisation of a detector: values between the chosen operators pass through eight bits.

https://github.com/LibreYOLO/libreyolo/pull/361
"""
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"bits": 8, "op_types": ("MatMul", "Sigmoid", "Mul", "Concat")}
INFO = [("features", [1, 16, 8]), ("output", [1, 16, 7])]


def head():
    rng = np.random.default_rng(0)
    init = {"reg.weight": rng.normal(size=(8, 4)), "cls.weight": rng.normal(size=(8, 3)), "stride": np.array(600.0)}
    nodes = [helper.make_node("MatMul", ["features", "reg.weight"], ["/reg/MatMul_output_0"], name="/reg/MatMul"),
             helper.make_node("Sigmoid", ["/reg/MatMul_output_0"], ["/reg/Sigmoid_output_0"], name="/reg/Sigmoid"),
             helper.make_node("Mul", ["/reg/Sigmoid_output_0", "stride"], ["/reg/Mul_output_0"], name="/reg/Mul"),
             helper.make_node("MatMul", ["features", "cls.weight"], ["/cls/MatMul_output_0"], name="/cls/MatMul"),
             helper.make_node("Sigmoid", ["/cls/MatMul_output_0"], ["/cls/Sigmoid_output_0"], name="/cls/Sigmoid"),
             helper.make_node("Concat", ["/reg/Mul_output_0", "/cls/Sigmoid_output_0"], ["output"], name="/Concat", axis=-1)]
    return nodes, [numpy_helper.from_array(v.astype(np.float32), k) for k, v in init.items()]


def build(nodes, inits, outputs=("output",)):
    outs = [helper.make_tensor_value_info(o, TensorProto.FLOAT, INFO[1][1] if o == "output" else None) for o in outputs]
    graph = helper.make_graph(nodes, "yolo9", [helper.make_tensor_value_info(INFO[0][0], TensorProto.FLOAT, INFO[0][1])],
                              outs, inits)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def calibrate(nodes, inits, data):
    names = [o for n in nodes for o in n.output]
    session = ort.InferenceSession(build(nodes, inits, names).SerializeToString())
    ranges = {}
    for batch in data:
        for name, v in zip(names, session.run(names, {"features": batch})):
            low, high = ranges.get(name, (0.0, 0.0))
            ranges[name] = min(low, float(v.min())), max(high, float(v.max()))
    return ranges


def quantize_static(nodes, inits, data, config):
    ranges, top, out = calibrate(nodes, inits, data), 2 ** config["bits"] - 1, []
    inits = list(inits)
    for node in nodes:
        name = node.output[0]
        if node.op_type not in config["op_types"]:
            out.append(node)
            continue
        low, high = ranges[name]
        scale = (high - low) / top
        inits += [numpy_helper.from_array(np.array(scale, np.float32), name + "_scale"),
                  numpy_helper.from_array(np.array(round(-low / scale), np.uint8), name + "_zero_point")]
        params = [name + "_scale", name + "_zero_point"]
        out.append(helper.make_node(node.op_type, list(node.input), [name + "_raw"], name=node.name))
        out[-1].attribute.extend(node.attribute)
        out.append(helper.make_node("QuantizeLinear", [name + "_raw"] + params, [name + "_q"], name=name + "_QuantizeLinear"))
        out.append(helper.make_node("DequantizeLinear", [name + "_q"] + params, [name], name=name + "_DequantizeLinear"))
    return build(out, inits)


def model():
    nodes, inits = head()
    rng = np.random.default_rng(1)
    data = [rng.normal(size=(1, 16, 8)).astype(np.float32) for _ in range(4)]
    return quantize_static(nodes, inits, data, CONFIG)


def inputs():
    return {"features": np.random.default_rng(2).normal(size=(1, 16, 8)).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
