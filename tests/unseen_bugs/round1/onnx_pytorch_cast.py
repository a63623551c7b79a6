"""A scripted torch module that reshapes twice by the sizes that it reads at run time, casts,
and divides by a constant; then a linear layer.

https://github.com/pytorch/pytorch/issues/58367
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

NODES = []


def op(kind, inputs, name, outputs=1, **attrs):
    outs = ["%s_out%d" % (name, i) for i in range(outputs)]
    NODES.append(helper.make_node(kind, inputs, outs, name=name, **attrs))
    return outs[0]


def const(name, value):
    return op("Constant", [], name, value=numpy_helper.from_array(np.asarray(value)))


def size_of(x, axis, n):
    shape = op("Shape", [x], "Shape_%d" % n)
    index = const("Constant_%d" % (n + 1), np.int64(axis))
    return op("Gather", [shape, index], "Gather_%d" % (n + 2), axis=0)


def reshape_rest(x, size, n):
    axes = const("Constant_%d" % n, np.array([0], np.int64))
    a = op("Unsqueeze", [size, axes], "Unsqueeze_%d" % (n + 1))
    rest = const("Constant_%d" % (n + 2), np.array([-1], np.int64))
    shape = op("Concat", [a, rest], "Concat_%d" % (n + 3), axis=0)
    return op("Reshape", [x, shape], "Reshape_%d" % (n + 4))


def scaled(x):
    x = op("Cast", [x], "Cast_16", to=TensorProto.FLOAT)
    two = const("Constant_17", np.float32(2.0))
    x = op("Cast", [x], "Cast_18", to=TensorProto.DOUBLE)
    return op("Div", [x, two], "Div_19")


def model():
    NODES.clear()
    x = reshape_rest("data", size_of("data", 0, 0), 3)
    x = reshape_rest(x, size_of(x, 1, 8), 11)
    x = scaled(x)
    NODES.append(helper.make_node("Gemm", [x, "fc.weight", "fc.bias"], ["output"],
                                  name="Gemm_20", transB=1))
    rng = np.random.default_rng(2)
    weights = [numpy_helper.from_array(rng.normal(size=(4, 3)).astype(np.float32), "fc.weight"),
               numpy_helper.from_array(np.zeros(4, np.float32), "fc.bias")]
    graph = helper.make_graph(
        list(NODES), "torch-jit-export",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [3, 2, 1])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [2, 4])], weights)
    return helper.make_model(graph, producer_name="pytorch", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 13)])


def inputs():
    return {"data": np.random.default_rng(3).normal(size=(3, 2, 1)).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
