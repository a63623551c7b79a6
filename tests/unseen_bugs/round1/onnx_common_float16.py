"""A squeeze-and-excitation block of an image backbone, converted to float16 with the inputs
and outputs kept as they were.

https://github.com/microsoft/onnxconverter-common/issues/323
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CHANNELS, REDUCED, SIDE = 8, 2, 128
SCOPE = "efficientnet-b0/blocks_0/se/"
OP_BLOCK_LIST = ["Resize", "TopK", "NonMaxSuppression"]


def float_graph():
    rng = np.random.default_rng(4)
    w = {
        SCOPE + "conv2d/kernel": rng.normal(size=(REDUCED, CHANNELS, 1, 1)) * 0.3,
        SCOPE + "conv2d/bias": np.zeros(REDUCED),
        SCOPE + "conv2d_1/kernel": rng.normal(size=(CHANNELS, REDUCED, 1, 1)) * 0.3,
        SCOPE + "conv2d_1/bias": np.zeros(CHANNELS),
        SCOPE + "Mean/scale": np.array(1.0 / (SIDE * SIDE)),
    }
    w = {k: v.astype(np.float32) for k, v in w.items()}
    ints = {"spatial_axes": np.array([2, 3]), "axis_2": np.array([2]), "axis_3": np.array([3])}
    nodes = [
        ("ReduceSum", ["input_1", "spatial_axes"], "Mean/Sum", {"keepdims": 0}),
        ("Unsqueeze", ["Mean/Sum", "axis_2"], "Mean/ExpandDims", {}),
        ("Unsqueeze", ["Mean/ExpandDims", "axis_3"], "Mean/ExpandDims_1", {}),
        ("Mul", ["Mean/ExpandDims_1", SCOPE + "Mean/scale"], "Mean", {}),
        ("Conv", ["Mean", SCOPE + "conv2d/kernel", SCOPE + "conv2d/bias"], "conv2d", {}),
        ("Relu", ["conv2d"], "Relu", {}),
        ("Conv", ["Relu", SCOPE + "conv2d_1/kernel", SCOPE + "conv2d_1/bias"], "conv2d_1", {}),
        ("Sigmoid", ["conv2d_1"], "Sigmoid", {}),
        ("Mul", ["input_1", "Sigmoid"], "output_1", {}),
    ]
    return nodes, w, ints


def convert_float_to_float16(nodes, weights):
    """Nodes of the kinds in OP_BLOCK_LIST stay in float32, between two casts."""
    out = [helper.make_node("Cast", ["input_1"], ["graph_input_cast0"], name="graph_input_cast0",
                            to=TensorProto.FLOAT16)]
    for kind, ins, name, attrs in nodes:
        ins = ["graph_input_cast0" if i == "input_1" else i for i in ins]
        result = "graph_output_cast0" if name == "output_1" else name
        if kind in OP_BLOCK_LIST:
            a, b = name + "_input_cast0", name + "_output_cast0"
            out.append(helper.make_node("Cast", ins[:1], [a], name=a, to=TensorProto.FLOAT))
            out.append(helper.make_node(kind, [a] + ins[1:], [b], name=SCOPE + name, **attrs))
            out.append(helper.make_node("Cast", [b], [result], name=b, to=TensorProto.FLOAT16))
        else:
            out.append(helper.make_node(kind, ins, [result], name=SCOPE + name, **attrs))
    out.append(helper.make_node("Cast", ["graph_output_cast0"], ["output_1"],
                                name="graph_output_cast0", to=TensorProto.FLOAT))
    return out, {k: v.astype(np.float16) for k, v in weights.items()}


def model():
    nodes, weights, ints = float_graph()
    nodes, weights = convert_float_to_float16(nodes, weights)
    shape = [1, CHANNELS, SIDE, SIDE]
    graph = helper.make_graph(
        nodes, "tf2onnx",
        [helper.make_tensor_value_info("input_1", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("output_1", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(v, k) for k, v in {**weights, **ints}.items()])
    return helper.make_model(graph, producer_name="tf2onnx", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    x = np.random.default_rng(5).random((1, CHANNELS, SIDE, SIDE), dtype=np.float32)
    return {"input_1": x * 4 + 3}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
