"""A summary is infinite: a model converted to float16 sums beyond 65504.

https://github.com/tinygrad/tinygrad/issues/11705
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def to_half(array):
    return array.astype(np.float16)


def summarizer():
    axes = numpy_helper.from_array(np.array([1], np.int64), "axes")
    gain = numpy_helper.from_array(to_half(np.array([70.0], np.float32)), "gain")
    nodes = [
        helper.make_node("Relu", ["x"], ["activation"], "/summarizer/Relu"),
        helper.make_node("Mul", ["activation", "gain"], ["scaled"], "/summarizer/Mul"),
        helper.make_node("ReduceSum", ["scaled", "axes"], ["total"], "/ReduceSum"),  # guilty
        helper.make_node(
            "Cast", ["total"], ["summary"], "graph_output_cast0", to=TensorProto.FLOAT
        ),
    ]
    return nodes, [axes, gain]


def model():
    nodes, initializers = summarizer()
    graph = helper.make_graph(
        nodes,
        "summarizer_fp16",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 1000])],
        [helper.make_tensor_value_info("summary", TensorProto.FLOAT, [1, 1])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"x": np.ones((1, 1000), np.float16)}


def shows_fault(result):
    return bool(np.isinf(result[0]).any())
