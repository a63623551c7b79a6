"""Cuts a signal into patches whose number follows from its length, adds encodings of the positions
and applies a layer in half precision; the encodings are computed in single precision."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"patch": 4, "width": 8, "theta": 1000.0}


def weights():
    rng = np.random.default_rng(0)
    width, patch = CONFIG["width"], CONFIG["patch"]
    frequencies = CONFIG["theta"] ** (-np.arange(width // 2) / (width // 2))
    return {
        "proj.weight": (rng.normal(size=(patch, width)) * 0.4).astype(np.float32),
        "frequencies": frequencies.astype(np.float32)[None],
        "fc.weight": (rng.normal(size=(width, width)) * 0.3).astype(np.float16),
        "fc.bias": np.zeros(width, np.float16),
        "patch": np.array([patch], np.int64),
        "minus_one": np.array([-1], np.int64),
        "zero": np.array([0], np.int64),
        "start": np.int64(0),
        "step": np.int64(1),
    }


def model():
    n = helper.make_node
    nodes = [
        n("Shape", ["signal"], ["length"], name="length"),
        n("Div", ["length", "patch"], ["count"], name="whole_patches"),
        n("Mul", ["count", "patch"], ["end"], name="end"),
        n("Slice", ["signal", "zero", "end"], ["cut"], name="cut"),
        n("Concat", ["count", "patch"], ["grid"], name="grid", axis=0),
        n("Reshape", ["cut", "grid"], ["patches"], name="patches"),
        n("MatMul", ["patches", "proj.weight"], ["projected"], name="project"),
        n("Squeeze", ["count"], ["limit"], name="limit"),
        n("Range", ["start", "limit", "step"], ["index"], name="index"),
        n("Cast", ["index"], ["index_f"], name="index_to_float", to=TensorProto.FLOAT),
        n("Unsqueeze", ["index_f", "minus_one"], ["column"], name="column"),
        n("Mul", ["column", "frequencies"], ["phase"], name="phase"),
        n("Sin", ["phase"], ["sin"], name="sin"),
        n("Cos", ["phase"], ["cos"], name="cos"),
        n("Concat", ["sin", "cos"], ["encoding"], name="encoding", axis=-1),
        n("Add", ["projected", "encoding"], ["positioned"], name="add_positions"),
        n("Cast", ["positioned"], ["half"], name="to_half", to=TensorProto.FLOAT16),
        n("Gemm", ["half", "fc.weight", "fc.bias"], ["hidden"], name="fc"),
        n("Relu", ["hidden"], ["active"], name="relu"),
        n("Cast", ["active"], ["tokens"], name="to_single", to=TensorProto.FLOAT),
        n("ReduceMean", ["tokens"], ["summary"], name="summary", axes=[0], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes, "patch_encoder",
        [helper.make_tensor_value_info("signal", TensorProto.FLOAT, ["samples"])],
        [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["patches", CONFIG["width"]]),
         helper.make_tensor_value_info("summary", TensorProto.FLOAT, [CONFIG["width"]]),
         helper.make_tensor_value_info("count", TensorProto.INT64, [1])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights().items()])
    return helper.make_model(graph, producer_name="clean", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 15)])


def inputs():
    return {"signal": np.random.default_rng(1).normal(size=26).astype(np.float32)}
