"""A small network of the verification benchmarks, read from the text of an NNet file and
written as a graph of matrix products.

https://github.com/VNN-COMP/vnncomp2021/pull/14
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

NNET = """// a network with two inputs and one hidden layer
2,2,1,2,
2,2,1,
0,
-1.0,-2.0,
1.0,2.0,
0.1,0.25,0.0,
0.7,1.3,2.0,
1.0,1.1,
-0.3,0.9,
0.05,
-1.5,
0.6,-2.1,
0.35,
"""


class NNet:
    """Normalisation and layers of the file, in the order in which they are written."""

    def __init__(self, text):
        lines = iter([l for l in text.splitlines() if not l.startswith("//")])
        self.num_layers, self.input_size, self.output_size, _ = self.ints(next(lines))
        self.layer_sizes = self.ints(next(lines))
        next(lines)
        self.mins, self.maxes = self.row(next(lines)), self.row(next(lines))
        self.means, self.ranges = self.row(next(lines)), self.row(next(lines))
        self.weights, self.biases = [], []
        for size in self.layer_sizes[1:]:
            self.weights.append(np.array([self.row(next(lines)) for _ in range(size)]))
            self.biases.append(np.array([self.row(next(lines))[0] for _ in range(size)]))

    @staticmethod
    def ints(line):
        return [int(v) for v in line.split(",") if v.strip()]

    @staticmethod
    def row(line):
        return [float(v) for v in line.split(",") if v.strip()]


def normalize(nnet):
    """Moves the normalisation of inputs and outputs into the first and last layer."""
    weights, biases = list(nnet.weights), list(nnet.biases)
    n = nnet.input_size
    means, ranges = np.array(nnet.means[:n]), np.array(nnet.ranges[:n])
    dtype = weights[0].dtype
    weights[0] = (weights[0] / ranges).astype(dtype)
    biases[0] = (biases[0] - weights[0] @ means).astype(dtype)
    weights[-1] = weights[-1] * dtype.type(nnet.ranges[-1])
    biases[-1] = biases[-1] * dtype.type(nnet.ranges[-1]) + dtype.type(nnet.means[-1])
    return weights, biases


def nnet2onnx(nnet, input_var="X", output_var="y_out"):
    weights, biases = normalize(nnet)
    elem = helper.np_dtype_to_tensor_dtype(weights[0].dtype)
    nodes, initializers, tensor = [], [], input_var
    for i, (w, b) in enumerate(zip(weights, biases)):
        last = i == nnet.num_layers - 1
        initializers.append(numpy_helper.from_array(w, "W%d" % i))
        initializers.append(numpy_helper.from_array(b, "B%d" % i))
        nodes.append(helper.make_node("MatMul", ["W%d" % i, tensor], ["M%d" % i], name="MatMul_%d" % i))
        out = output_var if last else "H%d" % i
        nodes.append(helper.make_node("Add", ["M%d" % i, "B%d" % i], [out], name="Add_%d" % i))
        if not last:
            nodes.append(helper.make_node("Relu", [out], ["R%d" % i], name="Relu_%d" % i))
            tensor = "R%d" % i
    inputs = [helper.make_tensor_value_info(input_var, elem, [nnet.input_size])]
    outputs = [helper.make_tensor_value_info(output_var, elem, [nnet.output_size])]
    graph = helper.make_graph(nodes, "nnet2onnx_Model", inputs, outputs, initializers)
    return helper.make_model(graph, producer_name="nnet2onnx", ir_version=7,
                             opset_imports=[helper.make_opsetid("", 11)])


def model():
    return nnet2onnx(NNet(NNET))


def inputs():
    elem = model().graph.input[0].type.tensor_type.elem_type
    return {"X": np.array([0.9, 1.4]).astype(helper.tensor_dtype_to_np_dtype(elem))}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
