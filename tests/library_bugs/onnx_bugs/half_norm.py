"""A normalized layer is zero: the squares of its float16 activations overflow.

https://github.com/microsoft/onnxruntime/issues/21345
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

PREFIX = "/layers.1.0/norm"


def cast(name, result, to):
    return helper.make_node("Cast", [name], [result], f"{result}_cast", to=to)


def half(value, name):
    return numpy_helper.from_array(np.array(value, np.float16), name)


def rms_norm(x, result):
    two = half(2, f"{PREFIX}/two")
    eps = numpy_helper.from_array(np.array(1e-5, np.float32), f"{PREFIX}/eps")
    nodes = [
        helper.make_node("Pow", [x, two.name], [f"{PREFIX}/squares"], f"{PREFIX}/Pow"),  # guilty
        cast(f"{PREFIX}/squares", "wide", TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["wide"], ["mean"], f"{PREFIX}/ReduceMean", axes=[-1]),
        helper.make_node("Add", ["mean", eps.name], ["safe"], f"{PREFIX}/Add"),
        helper.make_node("Sqrt", ["safe"], ["wide_root"], f"{PREFIX}/Sqrt"),
        cast("wide_root", "root", TensorProto.FLOAT16),
        helper.make_node("Div", [x, "root"], [result], f"{PREFIX}/Div"),
    ]
    return nodes, [two, eps]


def model():
    nodes, initializers = rms_norm("x", "normalized")
    graph = helper.make_graph(
        nodes,
        "band_split",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2, 8])],
        [helper.make_tensor_value_info("normalized", TensorProto.FLOAT16, [2, 8])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"x": np.linspace(280, 400, 16, dtype=np.float16).reshape(2, 8)}


def shows_fault(result):
    return not result[0].any()
