"""A float16 feed-forward block whose layer norm is computed in float32 between two casts."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

D, H = 16, 32


def model():
    rng = np.random.default_rng(111)
    half = {
        "fc1.weight": rng.normal(size=(D, H)) * D ** -0.5,
        "fc1.bias": np.zeros(H),
        "fc2.weight": rng.normal(size=(H, D)) * H ** -0.5,
        "fc2.bias": np.zeros(D),
    }
    init = [numpy_helper.from_array(v.astype(np.float16), k) for k, v in half.items()]
    init += [numpy_helper.from_array(np.ones(D, np.float32), "norm.weight"),
             numpy_helper.from_array(np.zeros(D, np.float32), "norm.bias")]
    n = helper.make_node
    nodes = [
        n("Cast", ["hidden"], ["/norm/Cast_output_0"], name="/norm/Cast", to=TensorProto.FLOAT),
        n("LayerNormalization", ["/norm/Cast_output_0", "norm.weight", "norm.bias"],
          ["/norm/LayerNormalization_output_0"], name="/norm/LayerNormalization", axis=-1, epsilon=1e-5),
        n("Cast", ["/norm/LayerNormalization_output_0"], ["/norm/Cast_1_output_0"],
          name="/norm/Cast_1", to=TensorProto.FLOAT16),
        n("MatMul", ["/norm/Cast_1_output_0", "fc1.weight"], ["/fc1/MatMul_output_0"], name="/fc1/MatMul"),
        n("Add", ["/fc1/MatMul_output_0", "fc1.bias"], ["/fc1/Add_output_0"], name="/fc1/Add"),
        n("Relu", ["/fc1/Add_output_0"], ["/act/Relu_output_0"], name="/act/Relu"),
        n("MatMul", ["/act/Relu_output_0", "fc2.weight"], ["/fc2/MatMul_output_0"], name="/fc2/MatMul"),
        n("Add", ["/fc2/MatMul_output_0", "fc2.bias"], ["/fc2/Add_output_0"], name="/fc2/Add"),
        n("Add", ["hidden", "/fc2/Add_output_0"], ["output"], name="/Add"),
    ]
    shape = ["batch", "sequence", D]
    graph = helper.make_graph(
        nodes, "main_graph", [helper.make_tensor_value_info("hidden", TensorProto.FLOAT16, shape)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT16, shape)], init)
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    return {"hidden": np.random.default_rng(112).normal(size=(2, 3, D)).astype(np.float16)}
