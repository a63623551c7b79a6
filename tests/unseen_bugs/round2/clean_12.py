"""A calibrated score: float32 features, a log-determinant and a quadratic form that are computed
in double between two casts, and the score in float32."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"features": 4, "threshold": 12.0}


def statistics():
    rng = np.random.default_rng(3)
    sample = rng.normal(size=(200, CONFIG["features"])) * [1.0, 10.0, 0.1, 3.0] + [5.0, 100.0, 0.0, -2.0]
    covariance = np.cov(sample.T)
    return {
        "location": sample.mean(axis=0),
        "precision": np.linalg.inv(covariance),
        "log_determinant": np.array(np.linalg.slogdet(covariance)[1]),
        "half": np.array(0.5),
        "constant": np.array(0.5 * CONFIG["features"] * np.log(2 * np.pi)),
    }


def model():
    n = helper.make_node
    nodes = [
        n("Cast", ["x"], ["wide"], name="to_double", to=TensorProto.DOUBLE),
        n("Sub", ["wide", "location"], ["centred"], name="centre"),
        n("MatMul", ["centred", "precision"], ["scaled"], name="scale"),
        n("Mul", ["scaled", "centred"], ["terms"], name="terms"),
        n("ReduceSum", ["terms", "axes"], ["distance"], name="distance", keepdims=0),
        n("Add", ["distance", "log_determinant"], ["total"], name="total"),
        n("Mul", ["total", "half"], ["halved"], name="halve"),
        n("Add", ["halved", "constant"], ["surprise"], name="surprise"),
        n("Cast", ["surprise"], ["score"], name="to_float", to=TensorProto.FLOAT),
        n("Greater", ["score", "threshold"], ["outlier"], name="outlier"),
    ]
    tensors = {**statistics(), "axes": np.array([-1], np.int64),
               "threshold": np.array(CONFIG["threshold"], np.float32)}
    graph = helper.make_graph(
        nodes, "score",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", CONFIG["features"]])],
        [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["n"]),
         helper.make_tensor_value_info("outlier", TensorProto.BOOL, ["n"])],
        [numpy_helper.from_array(v, k) for k, v in tensors.items()])
    return helper.make_model(graph, producer_name="clean", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    x = np.array([[5, 101, 0.05, -1], [4, 90, -0.1, 1], [9, 60, 0.4, -9]], np.float32)
    return {"x": x}
