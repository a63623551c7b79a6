"""Features of trips from their start and length, written with arrays that build a graph: the
operators of an array promote their operands and add a node.

https://github.com/Quantco/ndonnx/pull/207
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

INTEGERS, FLOATS = ("int32", "int64"), ("float32", "float64")
ONNX = {"int32": TensorProto.INT32, "int64": TensorProto.INT64, "float32": TensorProto.FLOAT,
        "float64": TensorProto.DOUBLE, "bool": TensorProto.BOOL}


class Builder:
    def __init__(self):
        self.nodes, self.initializers = [], []

    def op(self, kind, inputs, **attrs):
        out = "%s_%d_out" % (kind, len(self.nodes))
        self.nodes.append(helper.make_node(kind, inputs, [out], name="%s_%d" % (kind, len(self.nodes)), **attrs))
        return out

    def const(self, value, dtype):
        name = "const_%d" % len(self.initializers)
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return make_array(self, name, dtype)


def make_array(builder, var, dtype):
    kind = TyArrayInteger if dtype in INTEGERS else TyArrayFloating if dtype in FLOATS else TyArray
    return kind(builder, var, dtype)


def result_type(a, b):
    if isinstance(b, (int, float)):
        return a if a in FLOATS or isinstance(b, int) else "float64"
    if a in INTEGERS and b in FLOATS:
        a = "float64"
    if b in INTEGERS and a in FLOATS:
        b = "float64"
    return max(a, b, key=lambda d: (d in FLOATS, d))


def promote(x, other):
    dtype = result_type(x.dtype, getattr(other, "dtype", other))
    if isinstance(other, (int, float)):
        other = x.builder.const(other, dtype)
    return x.astype(dtype), other.astype(dtype)


class TyArray:
    def __init__(self, builder, var, dtype):
        self.builder, self.var, self.dtype = builder, var, dtype

    def astype(self, dtype):
        if dtype == self.dtype:
            return self
        return make_array(self.builder, self.builder.op("Cast", [self.var], to=ONNX[dtype]), dtype)

    def _apply(self, other, kind, dtype=None, **attrs):
        a, b = promote(self, other)
        return make_array(self.builder, self.builder.op(kind, [a.var, b.var], **attrs), dtype or a.dtype)


class TyArrayNumber(TyArray):
    def __add__(self, other):
        return self._apply(other, "Add")

    def __sub__(self, other):
        return self._apply(other, "Sub")

    def __mul__(self, other):
        return self._apply(other, "Mul")

    def __lt__(self, other):
        return self._apply(other, "Less", dtype="bool")

    def __mod__(self, other):
        return self._apply(other, "Mod", fmod=0)


class TyArrayInteger(TyArrayNumber):
    pass


class TyArrayFloating(TyArrayNumber):
    def __mod__(self, other):
        if isinstance(other, (TyArrayFloating, float)):
            mod = self._apply(other, "Mod", fmod=1)
            negative = mod < 0.0
            return where(negative, mod + other, mod)
        return super().__mod__(other)


def where(condition, x, y):
    x, y = promote(x, y)
    return make_array(x.builder, x.builder.op("Where", [condition.var, x.var, y.var]), x.dtype)


def features(start, minutes, period, hour):
    end = start * 60.0 + minutes
    of_day = end % 1440.0
    of_period = end % period
    return {"of_day": of_day, "of_period": of_period.astype("float32"), "weekday": (hour % 168) - 84}


def model():
    b = Builder()
    shapes = {"start": "float32", "minutes": "float32", "period": "int64", "hour": "int64"}
    args = {name: make_array(b, name, dtype) for name, dtype in shapes.items()}
    out = features(**args)
    b.nodes += [helper.make_node("Identity", [v.var], [k], name="out_" + k) for k, v in out.items()]
    graph = helper.make_graph(
        b.nodes, "trips",
        [helper.make_tensor_value_info(k, ONNX[d], ["n"]) for k, d in shapes.items()],
        [helper.make_tensor_value_info(k, ONNX[v.dtype], ["n"]) for k, v in out.items()],
        b.initializers)
    return helper.make_model(graph, producer_name="spox", ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def inputs():
    rng = np.random.default_rng(4)
    hour = rng.integers(-200, 400, size=10)
    return {"start": hour.astype(np.float32), "minutes": rng.uniform(0, 90, size=10).astype(np.float32),
            "period": rng.integers(20, 300, size=10), "hour": hour}


def fixed_model():
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).model()
