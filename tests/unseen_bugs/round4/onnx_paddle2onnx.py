"""Maps the operators of a small program to ONNX: features in double precision are clipped, one of
the bounds being a tensor, and classified in single precision.

https://github.com/PaddlePaddle/Paddle2ONNX/pull/512
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

DTYPE_MAP = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE,
             "int64": TensorProto.INT64}

PROGRAM = [
    {"type": "scale", "X": "x", "out": "scaled", "dtype": "float64", "scale": 0.01},
    {"type": "clip", "X": "scaled", "out": "bounded", "dtype": "float64", "min": -2.5, "Max": "limit"},
    {"type": "cast", "X": "bounded", "out": "features", "dtype": "float64", "out_dtype": "float32"},
    {"type": "fc", "X": "features", "out": "hidden", "dtype": "float32", "shape": (6, 8)},
    {"type": "relu6", "X": "hidden", "out": "active", "dtype": "float32"},
    {"type": "fc", "X": "active", "out": "logits", "dtype": "float32", "shape": (8, 3)},
]
VARIABLES = {"x": ("float64", ["N", 6]), "limit": ("float64", [1])}


class ONNXGraph:
    def __init__(self, opset_version):
        self.opset_version = opset_version
        self.rng = np.random.default_rng(0)
        self.nodes, self.parameters, self.count = [], [], {}

    def make_node(self, op_type, inputs=(), outputs=None, **attrs):
        n = self.count[op_type] = self.count.get(op_type, -1) + 1
        name = "p2o.%s.%d" % (op_type, n)
        outputs = outputs or [name + ".out"]
        self.nodes.append(helper.make_node(op_type, list(inputs), outputs, name=name, **attrs))
        return outputs[0]

    def constant(self, value, dtype="float32"):
        return self.make_node("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def parameter(self, name, shape):
        values = (self.rng.normal(size=shape) * 0.4).astype(np.float32)
        self.parameters.append(numpy_helper.from_array(values, name))
        return name


def clip_helper(graph, x, lower, upper, outputs):
    if not isinstance(lower, str):
        lower = graph.constant(lower)
    else:
        lower = graph.make_node("Squeeze", [lower])
    if not isinstance(upper, str):
        upper = graph.constant(upper)
    else:
        upper = graph.make_node("Squeeze", [upper])
    return graph.make_node("Clip", [x, lower, upper], outputs)


def map_operator(graph, op):
    kind, outputs = op["type"], [op["out"]]
    if kind == "scale":
        graph.make_node("Mul", [op["X"], graph.constant(op["scale"], op["dtype"])], outputs)
    elif kind == "cast":
        graph.make_node("Cast", [op["X"]], outputs, to=DTYPE_MAP[op["out_dtype"]])
    elif kind == "fc":
        w = graph.parameter(op["out"] + ".w_0", op["shape"])
        b = graph.parameter(op["out"] + ".b_0", op["shape"][1:])
        graph.make_node("Add", [graph.make_node("MatMul", [op["X"], w]), b], outputs)
    elif kind == "relu6":
        clip_helper(graph, op["X"], 0.0, 6.0, outputs)
    elif kind == "clip":
        clip_helper(graph, op["X"], op.get("Min", op.get("min")), op.get("Max", op.get("max")), outputs)
    else:
        raise NotImplementedError(kind)


def model():
    graph = ONNXGraph(opset_version=12)
    for op in PROGRAM:
        map_operator(graph, op)
    onnx_graph = helper.make_graph(
        graph.nodes, "paddle",
        [helper.make_tensor_value_info(k, DTYPE_MAP[t], s) for k, (t, s) in VARIABLES.items()],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])], graph.parameters)
    return helper.make_model(onnx_graph, producer_name="PaddlePaddle", ir_version=7,
                             opset_imports=[helper.make_opsetid("", graph.opset_version)])


def inputs():
    return {"x": np.random.default_rng(1).normal(size=(4, 6)) * 300, "limit": np.array([1.75])}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
