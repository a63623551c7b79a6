"""A jax function in double precision that joins a table of integers to a table of reals and
scales its argument by them, through a converter with one plugin for each primitive.

https://github.com/enpasos/jax2onnx/issues/66
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self, enable_double_precision):
        self.enable_double_precision = enable_double_precision
        self.nodes, self.initializers, self.counter = [], [], {}
        self.dtypes = {}

    def fresh(self, base):
        n = self.counter.get(base, 0)
        self.counter[base] = n + 1
        return "%s_%d" % (base, n)

    def working_dtype(self, dtype):
        if np.issubdtype(dtype, np.floating) and self.enable_double_precision:
            return np.dtype(np.float64)
        return np.dtype(dtype)

    def const(self, value):
        name = self.fresh("const")
        value = value.astype(self.working_dtype(value.dtype))
        self.initializers.append(numpy_helper.from_array(value, name))
        self.dtypes[name] = value.dtype
        return name

    def node(self, kind, inputs, dtype, out=None, **attrs):
        out = out or self.fresh("var")
        name = self.fresh(kind.lower())
        self.nodes.append(helper.make_node(kind, inputs, [out], name=name, **attrs))
        self.dtypes[out] = np.dtype(dtype)
        return out

    def cast(self, name, dtype):
        return self.node("Cast", [name], dtype, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def concatenate_plugin(b, arrays, axis):
    out_dtype = np.result_type(*(b.dtypes[a] for a in arrays))
    return b.node("Concat", arrays, out_dtype, axis=axis)


def mul_plugin(b, x, y):
    return b.node("Mul", [x, y], b.dtypes[x])


def reduce_sum_plugin(b, x, out):
    return b.node("ReduceSum", [x], b.dtypes[x], out=out, keepdims=0)


def to_onnx(enable_double_precision=True):
    b = Builder(enable_double_precision)
    b.dtypes["in_0"] = b.working_dtype(np.float32)
    steps = b.const(np.array([1, 2, 3], np.int32))
    rates = b.const(np.array([1.1, 2.2, 3.3], np.float32))
    table = concatenate_plugin(b, [steps, rates], axis=0)
    scaled = mul_plugin(b, "in_0", table)
    reduce_sum_plugin(b, scaled, out="out_0")
    return b


def model():
    b = to_onnx(enable_double_precision=True)
    kind = TensorProto.DOUBLE if b.enable_double_precision else TensorProto.FLOAT
    graph = helper.make_graph(b.nodes, "jax_model",
                              [helper.make_tensor_value_info("in_0", kind, [4, 6])],
                              [helper.make_tensor_value_info("out_0", kind, [])],
                              b.initializers)
    return helper.make_model(graph, producer_name="jax2onnx", ir_version=10,
                             opset_imports=[helper.make_opsetid("", 21)])


def inputs():
    return {"in_0": np.random.default_rng(6).normal(size=(4, 6))}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
