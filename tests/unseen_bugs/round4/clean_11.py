"""Embeds sentences: token embeddings, a mean over the tokens that are no padding, a projection of
unit length, and the nearest of a few stored sentences."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"vocab": 30, "hidden": 12, "out": 8, "stored": 5}


def weights():
    rng = np.random.default_rng(0)
    stored = rng.normal(size=(CONFIG["out"], CONFIG["stored"]))
    stored /= np.linalg.norm(stored, axis=0)
    return {
        "embeddings.weight": rng.normal(size=(CONFIG["vocab"], CONFIG["hidden"])).astype(np.float32),
        "dense.weight": (rng.normal(size=(CONFIG["hidden"], CONFIG["out"])) * 0.3).astype(np.float32),
        "dense.bias": np.zeros(CONFIG["out"], np.float32),
        "stored": stored.astype(np.float32),
        "last": np.array([-1], np.int64),
        "tokens": np.array([1], np.int64),
        "one": np.float32(1),
        "eps": np.float32(1e-12),
        "zero": np.int64(0),
    }


def model():
    n = helper.make_node
    nodes = [
        n("Gather", ["embeddings.weight", "input_ids"], ["embedded"], name="embed"),
        n("Unsqueeze", ["attention_mask", "last"], ["mask_column"], name="mask_column"),
        n("Cast", ["mask_column"], ["mask"], name="mask_to_float", to=TensorProto.FLOAT),
        n("Mul", ["embedded", "mask"], ["masked"], name="apply_mask"),
        n("ReduceSum", ["masked", "tokens"], ["total"], name="sum_tokens", keepdims=0),
        n("ReduceSum", ["mask", "tokens"], ["count"], name="count_tokens", keepdims=0),
        n("Max", ["count", "one"], ["divisor"], name="at_least_one"),
        n("Div", ["total", "divisor"], ["mean"], name="mean_pool"),
        n("Gemm", ["mean", "dense.weight", "dense.bias"], ["projected"], name="dense"),
        n("Tanh", ["projected"], ["active"], name="tanh"),
        n("ReduceL2", ["active"], ["norm"], name="norm", axes=[-1], keepdims=1),
        n("Max", ["norm", "eps"], ["safe_norm"], name="safe_norm"),
        n("Div", ["active", "safe_norm"], ["sentence"], name="unit"),
        n("MatMul", ["sentence", "stored"], ["similarity"], name="similarity"),
        n("ArgMax", ["similarity"], ["nearest"], name="nearest", axis=-1, keepdims=0),
        n("ReduceSum", ["attention_mask", "tokens"], ["lengths"], name="lengths", keepdims=0),
        n("Greater", ["lengths", "zero"], ["not_empty"], name="not_empty"),
    ]
    ids = ["batch", "length"]
    graph = helper.make_graph(
        nodes, "sentence_encoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ids),
         helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ids)],
        [helper.make_tensor_value_info("sentence", TensorProto.FLOAT, ["batch", CONFIG["out"]]),
         helper.make_tensor_value_info("nearest", TensorProto.INT64, ["batch"]),
         helper.make_tensor_value_info("not_empty", TensorProto.BOOL, ["batch"])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights().items()])
    return helper.make_model(graph, producer_name="clean", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 15)])


def inputs():
    rng = np.random.default_rng(1)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], np.int64)
    return {"input_ids": rng.integers(0, 30, (3, 5)) * mask, "attention_mask": mask}
