"""A quantised matrix product, written out in the operations of its definition: integers
without their zero points, product, scale, round, zero point of the result.

https://github.com/onnx/onnx/issues/7835
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

QUANT = {"a_scale": 0.05, "a_zero_point": 8, "b_scale": 0.04, "b_zero_point": 120,
         "y_scale": 0.02, "y_zero_point": 10}
N, K, M = 4, 16, 6


class Function:
    def __init__(self, prefix):
        self.prefix = prefix
        self.nodes = []

    def __call__(self, kind, *inputs, to=None, name=None):
        name = self.prefix + (name or kind)
        attrs = {} if to is None else {"to": to}
        self.nodes.append(helper.make_node(kind, list(inputs), [name + "_output_0"],
                                           name=name, **attrs))
        return name + "_output_0"


def qlinear_matmul(f, a, b):
    a = f("Cast", a, to=TensorProto.INT32, name="a_int32")
    a_zp = f("Cast", "a_zero_point", to=TensorProto.INT32, name="a_zp_int32")
    a = f("Sub", a, a_zp, name="a_shifted")
    b = f("Cast", b, to=TensorProto.INT32, name="b_int32")
    b_zp = f("Cast", "b_zero_point", to=TensorProto.INT32, name="b_zp_int32")
    b = f("Sub", b, b_zp, name="b_shifted")
    y = f("MatMul", a, b)
    y = f("Cast", y, to=TensorProto.FLOAT, name="y_float")
    scale = f("Mul", "a_scale", "b_scale", name="scale_ab")
    scale = f("Div", scale, "y_scale", name="scale_y")
    y = f("Mul", y, scale, name="y_scaled")
    y = f("Round", y)
    y_zp = f("Cast", "y_zero_point", to=TensorProto.FLOAT, name="y_zp_float")
    y = f("Add", y, y_zp, name="y_shifted")
    return f("Cast", y, to=TensorProto.UINT8, name="y_uint8")


def model():
    f = Function("/QLinearMatMul/")
    y = qlinear_matmul(f, "a", "b")
    f.nodes.append(helper.make_node("Identity", [y], ["y"], name="/Identity"))
    init = [numpy_helper.from_array(np.array(v, np.float32 if k.endswith("scale") else np.uint8), k)
            for k, v in QUANT.items()]
    graph = helper.make_graph(
        f.nodes, "qlinear_matmul",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, [N, K]),
         helper.make_tensor_value_info("b", TensorProto.UINT8, [K, M])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [N, M])], init)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])


def inputs():
    rng = np.random.default_rng(7)
    return {"a": rng.integers(0, 256, (N, K)).astype(np.uint8),
            "b": rng.integers(90, 150, (K, M)).astype(np.uint8)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
