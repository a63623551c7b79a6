"""A half-precision layer whose normalisation is done in float32 between two casts of the exporter."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model():
    rng = np.random.default_rng(0)
    inits = [numpy_helper.from_array(rng.normal(size=(16, 8)).astype(np.float16), "proj.weight"),
             numpy_helper.from_array(np.ones(16, np.float32), "norm.weight"),
             numpy_helper.from_array(np.array(1e-6, np.float32), "eps"),
             numpy_helper.from_array(np.array(2.0, np.float32), "two")]
    nodes = [
        helper.make_node("Cast", ["x"], ["/norm/Cast_output_0"], name="/norm/Cast", to=TensorProto.FLOAT),
        helper.make_node("Pow", ["/norm/Cast_output_0", "two"], ["/norm/Pow_output_0"], name="/norm/Pow"),
        helper.make_node("ReduceMean", ["/norm/Pow_output_0"], ["/norm/ReduceMean_output_0"], name="/norm/ReduceMean", axes=[-1]),
        helper.make_node("Add", ["/norm/ReduceMean_output_0", "eps"], ["/norm/Add_output_0"], name="/norm/Add"),
        helper.make_node("Sqrt", ["/norm/Add_output_0"], ["/norm/Sqrt_output_0"], name="/norm/Sqrt"),
        helper.make_node("Div", ["/norm/Cast_output_0", "/norm/Sqrt_output_0"], ["/norm/Div_output_0"], name="/norm/Div"),
        helper.make_node("Mul", ["/norm/Div_output_0", "norm.weight"], ["/norm/Mul_output_0"], name="/norm/Mul"),
        helper.make_node("Cast", ["/norm/Mul_output_0"], ["/norm/Cast_1_output_0"], name="/norm/Cast_1", to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["/norm/Cast_1_output_0", "proj.weight"], ["y"], name="/proj/MatMul"),
    ]
    graph = helper.make_graph(
        nodes, "main_graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [3, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [3, 8])], inits)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"x": (np.random.default_rng(1).normal(size=(3, 16)) * 400).astype(np.float16)}
