"""A token classifier with an embedding, a mean over the valid tokens, and a quantised linear
layer between QuantizeLinear and DequantizeLinear."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

VOCAB, D, CLASSES = 30, 8, 3


def model():
    rng = np.random.default_rng(121)
    weight = rng.normal(size=(D, CLASSES)).astype(np.float32)
    w_scale = np.float32(np.abs(weight).max() / 127)
    arrays = {
        "embed.weight": rng.normal(size=(VOCAB, D)).astype(np.float32),
        "axis_1": np.array([1], np.int64), "axis_2": np.array([2], np.int64),
        "one": np.float32(1.0),
        "x_scale": np.float32(3.5 / 127), "x_zero_point": np.int8(0),
        "w_quantized": np.clip(np.rint(weight / w_scale), -127, 127).astype(np.int8),
        "w_scale": w_scale, "w_zero_point": np.int8(0),
        "classifier.bias": np.zeros(CLASSES, np.float32),
    }
    n = helper.make_node
    nodes = [
        n("Gather", ["embed.weight", "input_ids"], ["tokens"], name="/embed/Gather"),
        n("Cast", ["attention_mask"], ["mask"], name="/Cast", to=TensorProto.FLOAT),
        n("Unsqueeze", ["mask", "axis_2"], ["mask_3d"], name="/Unsqueeze"),
        n("Mul", ["tokens", "mask_3d"], ["kept"], name="/Mul"),
        n("ReduceSum", ["kept", "axis_1"], ["total"], name="/ReduceSum", keepdims=0),
        n("ReduceSum", ["mask", "axis_1"], ["count"], name="/ReduceSum_1", keepdims=1),
        n("Max", ["count", "one"], ["count_safe"], name="/Max"),
        n("Div", ["total", "count_safe"], ["pooled"], name="/Div"),
        n("QuantizeLinear", ["pooled", "x_scale", "x_zero_point"], ["pooled_q"], name="/q"),
        n("DequantizeLinear", ["pooled_q", "x_scale", "x_zero_point"], ["pooled_dq"], name="/dq"),
        n("DequantizeLinear", ["w_quantized", "w_scale", "w_zero_point"], ["w_dq"], name="/w_dq"),
        n("Gemm", ["pooled_dq", "w_dq", "classifier.bias"], ["logits"], name="/classifier/Gemm"),
    ]
    graph = helper.make_graph(
        nodes, "main_graph",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
         helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in arrays.items()])
    return helper.make_model(graph, producer_name="pytorch", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    rng = np.random.default_rng(122)
    mask = np.ones((2, 6), np.int64)
    mask[1, 4:] = 0
    return {"input_ids": rng.integers(0, VOCAB, (2, 6)), "attention_mask": mask}
