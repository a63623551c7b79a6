"""Record numbers are negative: a converter casts int64 weights to int32.

https://github.com/onnx/tensorflow-onnx/issues/883
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FIRST_RECORD = 3_000_000_000


def cast(name, result, to):
    return helper.make_node("Cast", [name], [result], f"{name}_cast", to=to)


def record_numbers():
    base = numpy_helper.from_array(np.array(FIRST_RECORD, np.int64), "base")
    page = numpy_helper.from_array(np.array(1000, np.int64), "page")
    nodes = [
        helper.make_node("Add", ["offsets", "base"], ["records"], "const_fold_opt__961"),
        cast("records", "weights", TensorProto.INT32),  # guilty
        cast("weights", "indices", TensorProto.INT64),
        helper.make_node("Div", ["indices", "page"], ["pages"], "pages_div"),
    ]
    return nodes, [base, page]


def model():
    nodes, initializers = record_numbers()
    graph = helper.make_graph(
        nodes,
        "batch_to_space",
        [helper.make_tensor_value_info("offsets", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("pages", TensorProto.INT64, ["n"])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    return {"offsets": np.arange(0, 5000, 1000, dtype=np.int64)}


def shows_fault(result):
    return bool((result[0] < 0).any())
