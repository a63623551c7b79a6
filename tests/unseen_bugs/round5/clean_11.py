"""Greedy decoding head: logits in float32, token ids in int64, a mask of padded places."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def model():
    rng = np.random.default_rng(0)
    inits = [numpy_helper.from_array(rng.normal(size=(8, 11)).astype(np.float32), "lm_head.weight"),
             numpy_helper.from_array(np.array(0, np.int64), "pad_id"),
             numpy_helper.from_array(np.array([1], np.int64), "axes")]
    nodes = [
        helper.make_node("MatMul", ["hidden", "lm_head.weight"], ["/lm_head/MatMul_output_0"], name="/lm_head/MatMul"),
        helper.make_node("ArgMax", ["/lm_head/MatMul_output_0"], ["/ArgMax_output_0"], name="/ArgMax", axis=-1, keepdims=0),
        helper.make_node("Cast", ["mask"], ["/Cast_output_0"], name="/Cast", to=TensorProto.BOOL),
        helper.make_node("Where", ["/Cast_output_0", "/ArgMax_output_0", "pad_id"], ["tokens"], name="/Where"),
        helper.make_node("Cast", ["mask"], ["/Cast_1_output_0"], name="/Cast_1", to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["/Cast_1_output_0", "axes"], ["lengths"], name="/ReduceSum", keepdims=0),
    ]
    graph = helper.make_graph(
        nodes, "main_graph",
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [2, 5, 8]),
         helper.make_tensor_value_info("mask", TensorProto.INT64, [2, 5])],
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [2, 5]),
         helper.make_tensor_value_info("lengths", TensorProto.FLOAT, [2])], inits)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"hidden": np.random.default_rng(1).normal(size=(2, 5, 8)).astype(np.float32),
            "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int64)}
