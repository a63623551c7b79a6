"""Converts the symbol of a face recognition network, whose first layers scale the pixels, to ONNX
with a table of translators per operator.

https://github.com/apache/mxnet/pull/13067
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

SYMBOL = [
    {"op": "null", "name": "data", "inputs": []},
    {"op": "_minus_scalar", "name": "_minusscalar0", "inputs": ["data"], "attrs": {"scalar": "127.5"}},
    {"op": "_mul_scalar", "name": "_mulscalar0", "inputs": ["_minusscalar0"],
     "attrs": {"scalar": "0.0078125"}},
    {"op": "null", "name": "conv0_weight", "inputs": []},
    {"op": "Convolution", "name": "conv0", "inputs": ["_mulscalar0", "conv0_weight"],
     "attrs": {"kernel": "(3, 3)", "stride": "(2, 2)", "pad": "(1, 1)"}},
    {"op": "Activation", "name": "relu0", "inputs": ["conv0"], "attrs": {"act_type": "relu"}},
    {"op": "Reshape", "name": "flatten0", "inputs": ["relu0"], "attrs": {"shape": "(1, -1)"}},
]


class MXNetGraph:
    registry_ = {}

    def __init__(self, params):
        self.params = params
        self.nodes, self.initializers = [], []

    @classmethod
    def register(cls, op_name):
        def wrapper(func):
            cls.registry_[op_name] = func
            return func
        return wrapper

    def add_initializer(self, name, array):
        elem = helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = helper.make_tensor(name, elem, array.shape, array.flatten().tolist())
        self.initializers.append(tensor)
        return name

    def add_node(self, kind, inputs, name, **attrs):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attrs))

    def convert(self, symbol):
        for node in symbol:
            if node["op"] == "null":
                if node["name"] in self.params:
                    self.add_initializer(node["name"], self.params[node["name"]])
            else:
                self.registry_[node["op"]](self, node)


def parse_tuple(text):
    return [int(v) for v in text.strip("()").split(",")]


def scalar_op_helper(graph, node, op_name):
    """A node of the operator between the input and an initialiser with the scalar."""
    scalar_value = [float(node["attrs"].get("scalar", 1))]
    scalar = graph.add_initializer("scalar_" + node["name"], np.array(scalar_value))
    graph.add_node(op_name, [node["inputs"][0], scalar], node["name"])


@MXNetGraph.register("_minus_scalar")
def convert_minus_scalar(graph, node):
    scalar_op_helper(graph, node, "Sub")


@MXNetGraph.register("_mul_scalar")
def convert_mul_scalar(graph, node):
    scalar_op_helper(graph, node, "Mul")


@MXNetGraph.register("Convolution")
def convert_convolution(graph, node):
    kernel, stride, pad = (parse_tuple(node["attrs"][k]) for k in ("kernel", "stride", "pad"))
    graph.add_node("Conv", node["inputs"], node["name"], kernel_shape=kernel, strides=stride,
                   pads=pad + pad)


@MXNetGraph.register("Activation")
def convert_activation(graph, node):
    graph.add_node(node["attrs"]["act_type"].capitalize(), node["inputs"], node["name"])


@MXNetGraph.register("Reshape")
def convert_reshape(graph, node):
    shape = np.array(parse_tuple(node["attrs"]["shape"]), dtype="int64")
    name = graph.add_initializer("reshape_attr_tensor_" + node["name"], shape)
    graph.add_node("Reshape", [node["inputs"][0], name], node["name"])


def load_params():
    rng = np.random.default_rng(4)
    return {"conv0_weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32) * 0.3}


def model():
    graph = MXNetGraph(load_params())
    graph.convert(SYMBOL)
    info = helper.make_tensor_value_info
    proto = helper.make_graph(graph.nodes, "mxnet_converted_model",
                              [info("data", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [info("flatten0", TensorProto.FLOAT, [1, 64])], graph.initializers)
    return helper.make_model(proto, ir_version=7, opset_imports=[helper.make_opsetid("", 11)])


def inputs():
    pixels = np.random.default_rng(5).integers(0, 256, size=(1, 3, 8, 8))
    return {"data": pixels.astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
