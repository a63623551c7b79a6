"""An image classifier that takes bytes: cast, normalisation, convolution, pooling and the two
best classes with their probabilities."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"mean": [123.7, 116.3, 103.5], "std": [58.4, 57.1, 57.4], "classes": 5}


def weights():
    rng = np.random.default_rng(0)
    shape = (1, 3, 1, 1)
    return {
        "mean": np.array(CONFIG["mean"], np.float32).reshape(shape),
        "std": np.array(CONFIG["std"], np.float32).reshape(shape),
        "conv.weight": rng.normal(size=(8, 3, 3, 3)).astype(np.float32) * 0.2,
        "conv.bias": np.zeros(8, np.float32),
        "fc.weight": rng.normal(size=(CONFIG["classes"], 8)).astype(np.float32) * 0.5,
        "fc.bias": np.zeros(CONFIG["classes"], np.float32),
        "k": np.array([2], np.int64),
        "scales": np.array([1, 1, 0.5, 0.5], np.float32),
    }


def model():
    n = helper.make_node
    nodes = [
        n("Transpose", ["image"], ["planar"], name="to_planar", perm=[0, 3, 1, 2]),
        n("Cast", ["planar"], ["pixels"], name="to_float", to=TensorProto.FLOAT),
        n("Sub", ["pixels", "mean"], ["centred"], name="centre"),
        n("Div", ["centred", "std"], ["normed"], name="normalise"),
        n("Resize", ["normed", "", "scales"], ["small"], name="resize", mode="linear"),
        n("Conv", ["small", "conv.weight", "conv.bias"], ["maps"], name="conv", pads=[1, 1, 1, 1]),
        n("Relu", ["maps"], ["active"], name="relu"),
        n("GlobalAveragePool", ["active"], ["pooled"], name="pool"),
        n("Flatten", ["pooled"], ["flat"], name="flatten"),
        n("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], name="fc", transB=1),
        n("Softmax", ["logits"], ["probabilities"], name="softmax", axis=-1),
        n("TopK", ["probabilities", "k"], ["best", "classes"], name="topk", axis=-1),
    ]
    graph = helper.make_graph(
        nodes, "classifier",
        [helper.make_tensor_value_info("image", TensorProto.UINT8, [1, 16, 16, 3])],
        [helper.make_tensor_value_info("best", TensorProto.FLOAT, [1, 2]),
         helper.make_tensor_value_info("classes", TensorProto.INT64, [1, 2])],
        [numpy_helper.from_array(v, k) for k, v in weights().items()])
    return helper.make_model(graph, producer_name="clean", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    return {"image": np.random.default_rng(1).integers(0, 256, size=(1, 16, 16, 3)).astype(np.uint8)}
