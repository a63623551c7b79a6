"""A two-tower ranker as ONNX: ids of 64 bits and weights in half precision, casts to float before
the norms and the scores, a mask of padding and the best items."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONFIG = {"items": 40, "users": 12, "dim": 8, "history": 5, "k": 4}


class Graph:
    def __init__(self):
        self.nodes, self.initializers = [], []

    def const(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind, *inputs, out, **attrs):
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name="/" + out + "/" + kind, **attrs))
        return out


def normalise(g, x, prefix):
    squared = g.op("Mul", x, x, out=prefix + "_squared")
    total = g.op("ReduceSum", squared, "last", out=prefix + "_total", keepdims=1)
    norm = g.op("Sqrt", g.op("Add", total, "eps", out=prefix + "_safe"), out=prefix + "_norm")
    return g.op("Div", x, norm, out=prefix + "_unit")


def user_tower(g):
    profile = g.op("Gather", "user_table", "user_id", out="profile_half")
    profile = g.op("Cast", profile, out="profile", to=TensorProto.FLOAT)
    seen = g.op("Gather", "item_table", "history", out="seen_half")
    seen = g.op("Cast", seen, out="seen", to=TensorProto.FLOAT)
    real = g.op("Greater", "history", "padding", out="real")
    weight = g.op("Cast", real, out="weight", to=TensorProto.FLOAT)
    weight = g.op("Unsqueeze", weight, "last", out="weight_column")
    total = g.op("ReduceSum", g.op("Mul", seen, weight, out="seen_kept"), "middle", out="seen_sum", keepdims=0)
    count = g.op("ReduceSum", weight, "middle", out="count", keepdims=0)
    count = g.op("Max", count, "one", out="count_safe")
    mean = g.op("Div", total, count, out="seen_mean")
    return normalise(g, g.op("Add", profile, mean, out="user"), "user")


def model():
    g, rng, c = Graph(), np.random.default_rng(0), CONFIG
    g.const("item_table", rng.normal(size=(c["items"], c["dim"])).astype(np.float16))
    g.const("user_table", rng.normal(size=(c["users"], c["dim"])).astype(np.float16))
    g.const("padding", np.int64(0))
    g.const("one", np.float32(1))
    g.const("eps", np.float32(1e-6))
    g.const("last", np.array([-1]))
    g.const("middle", np.array([1]))
    g.const("k", np.array([c["k"]]))
    g.const("temperature", np.float32(0.1))
    user = user_tower(g)
    items = g.op("Cast", "item_table", out="items", to=TensorProto.FLOAT)
    items = g.op("Transpose", normalise(g, items, "item"), out="items_t", perm=[1, 0])
    scores = g.op("Div", g.op("MatMul", user, items, out="cosine"), "temperature", out="scores")
    probability = g.op("Softmax", scores, out="probability", axis=-1)
    g.nodes.append(helper.make_node("TopK", [probability, "k"], ["best", "ids"], name="/topk/TopK", axis=-1))
    graph = helper.make_graph(
        g.nodes, "ranker",
        [helper.make_tensor_value_info("user_id", TensorProto.INT64, ["n"]),
         helper.make_tensor_value_info("history", TensorProto.INT64, ["n", c["history"]])],
        [helper.make_tensor_value_info("best", TensorProto.FLOAT, ["n", c["k"]]),
         helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", c["k"]])], g.initializers)
    return helper.make_model(graph, producer_name="clean", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    return {"user_id": np.array([3, 0, 11]),
            "history": np.array([[5, 9, 0, 0, 0], [0, 0, 0, 0, 0], [12, 39, 4, 8, 1]])}
