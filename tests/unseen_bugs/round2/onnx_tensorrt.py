"""Folds the constants of an exported graph into initialisers, as a graph editor does before the
model is given to the runtime.

https://github.com/NVIDIA/TensorRT/pull/4834
"""
import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper


class Graph:
    def __init__(self, nodes, inputs, outputs, initializers):
        self.nodes, self.inputs, self.outputs = nodes, inputs, outputs
        self.initializers = {t.name: numpy_helper.to_array(t) for t in initializers}

    def constant_values(self, node):
        attr = node.attribute[0]
        if attr.name == "value":
            return numpy_helper.to_array(attr.t)
        if attr.name == "sparse_value":
            raise NotImplementedError("sparse constants")
        if attr.name in ("value_string", "value_strings"):
            return None
        value = helper.get_attribute_value(attr)
        if attr.type in (AttributeProto.FLOATS, AttributeProto.INTS):
            value = list(value)
        return np.array(value)

    def fold_constants(self, size_threshold=None):
        """Lowers Constant nodes, then evaluates the nodes whose inputs are all known."""
        kept = []
        for node in self.nodes:
            if node.op_type == "Constant":
                values = self.constant_values(node)
                if values is not None and (size_threshold is None or values.nbytes <= size_threshold):
                    self.initializers[node.output[0]] = values
                    continue
            elif node.op_type in FOLDERS and all(i in self.initializers for i in node.input):
                arrays = [self.initializers[i] for i in node.input]
                self.initializers[node.output[0]] = FOLDERS[node.op_type](node, *arrays)
                continue
            kept.append(node)
        self.nodes = kept
        return self

    def cleanup(self):
        used = {i for n in self.nodes for i in n.input}
        self.initializers = {k: v for k, v in self.initializers.items() if k in used}
        return self

    def export(self):
        tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in self.initializers.items()]
        graph = helper.make_graph(self.nodes, "folded", self.inputs, self.outputs, tensors)
        return helper.make_model(graph, producer_name="graphsurgeon", ir_version=8,
                                 opset_imports=[helper.make_opsetid("", 17)])


FOLDERS = {
    "Concat": lambda node, *xs: np.concatenate(xs, axis=helper.get_node_attr_value(node, "axis")),
    "Unsqueeze": lambda node, x, axes: np.expand_dims(x, tuple(axes.tolist())),
    "Mul": lambda node, x, y: x * y,
}


def exported():
    rng = np.random.default_rng(0)
    n = helper.make_node
    nodes = [
        n("Constant", [], ["hidden_size"], name="Constant_hidden", value_ints=[6]),
        n("Constant", [], ["any_size"], name="Constant_any", value_ints=[-1]),
        n("Concat", ["any_size", "hidden_size"], ["flat"], name="Concat_shape", axis=0),
        n("Reshape", ["x", "flat"], ["rows"], name="Reshape_0"),
        n("Gemm", ["rows", "fc.weight", "fc.bias"], ["fc"], name="Gemm_0", transB=1),
        n("ReduceMean", ["fc"], ["mean"], name="ReduceMean_0", axes=[-1]),
        n("Sub", ["fc", "mean"], ["centred"], name="Sub_0"),
        n("Mul", ["centred", "centred"], ["squared"], name="Mul_0"),
        n("ReduceMean", ["squared"], ["variance"], name="ReduceMean_1", axes=[-1]),
        n("Constant", [], ["eps"], name="Constant_eps", value_float=1e-5),
        n("Add", ["variance", "eps"], ["shifted"], name="Add_eps"),
        n("Sqrt", ["shifted"], ["deviation"], name="Sqrt_0"),
        n("Div", ["centred", "deviation"], ["normed"], name="Div_0"),
        n("Constant", [], ["table"], name="Constant_table", value_floats=[0.5, 1.0, 1.5, 2.0]),
        n("Mul", ["normed", "table"], ["y"], name="Mul_table"),
    ]
    weights = [numpy_helper.from_array(rng.normal(size=(4, 6)).astype(np.float32), "fc.weight"),
               numpy_helper.from_array(np.zeros(4, np.float32), "fc.bias")]
    return Graph(nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 6])],
                 [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 4])], weights)


def model():
    return exported().fold_constants(size_threshold=1 << 16).cleanup().export()


def inputs():
    return {"x": np.random.default_rng(1).normal(size=(2, 3, 6)).astype(np.float32)}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
