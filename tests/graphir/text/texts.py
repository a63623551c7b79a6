"""Graphs to print, and what it means that one was read back the same."""

from __future__ import annotations

import numpy as np

from graphir import DType, Graph, Location, ops
from graphir.ops.attribute_record import content_of
from graphir.ops.types import TensorType
from tests.support.op_rows import ROWS

T = TensorType
f32, i64, c64 = DType.float32, DType.int64, DType.complex64


def exact(value):
    """A key by which any NaN equals any NaN, and -0.0 is not 0.0."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biu":
        with np.errstate(all="ignore"):
            wide = value.astype(np.complex128)
        return str(value.dtype), value.shape, repr(wide.tolist()).replace("-nan", "nan")
    return content_of({"": value})


def origins(symbol):
    return [(o.operand, o.op, told(o.location), *o[3:]) for o in symbol.origins]


def place(location):
    return location.file, location.line, location.column, location.layer


def told(location):
    """What text says of a location: nothing of one that is itself a place in a text."""
    return place(location) if location.file else None


def check_same(graph, other):
    """The same graph, symbol for symbol; of inputs, text has no locations."""
    assert (graph.name, graph.rules, graph.rules_before) == (
        *(other.name, other.rules, other.rules_before),
    )
    assert (graph.tf32, graph.input_names) == (other.tf32, other.input_names)
    assert graph.functions == other.functions
    assert len(graph) == len(other)
    for a, b in zip(graph.symbols, other.symbols, strict=True):
        assert (a.op, a.type, a.index) == (b.op, b.type, b.index)
        assert [x.index for x in a.args] == [x.index for x in b.args]
        assert list(a.attrs) == list(b.attrs)
        assert all(exact(a.attrs[name]) == exact(b.attrs[name]) for name in a.attrs)
        assert a.op is ops.input or told(a.location) == told(b.location)
        assert origins(a) == origins(b)
    for name in ("inputs", "outputs"):
        a, b = getattr(graph, name), getattr(other, name)
        assert [x.index for x in a] == [x.index for x in b]


def round_trip(graph):
    text = str(graph)
    again = Graph.parse(text)
    check_same(graph, again)
    assert str(again) == text
    again.verify()
    return text


REDUCED = """
    sum prod max min mean var std argmax argmin softmax cumulative_sum cumulative_prod logsoftmax
    sort argsort flip shape_of
""".split()  # noqa: SIM905


def every_op():
    """A graph with each op of the catalogue, and most attributes other than by default."""
    g = Graph("every", [T(f32, ("n", 4)), T(f32, (4,)), T(i64, (4,)), T("bool", ("n", 4))])
    x, v, i, b = g.inputs
    s = g.scalar[i64](1)
    made = [getattr(ops, name)(x) for name in REDUCED]
    for name, row in ROWS.items():
        operands = (x, v, v) if "f" in row.dtypes else (i, s) if "i" in row.dtypes else (b, b)
        made.append(ops.CATALOGUE[name](*operands[: len(ops.CATALOGUE[name].operands)]))
    made += [ops.matmul(v, v), ops.outer(v, v)]
    made += [ops.any(b, axis=0), ops.all(b, axis=[-1], keepdims=True)]
    made += [ops.where(b, x, 0.1), ops.clip(x, -1.0, float("inf")), x.cast("bfloat16")]
    made += [ops.gelu(x, approximate="tanh"), ops.sum(i, dtype="int32"), ops.var(x, 1, True, 1)]
    made += [ops.numpy_sum(x, b, 1, initial=0.5), ops.numpy_sum(x, True, layout=((1, 4), ()))]
    made += [ops.exp(x, loop=("exp", ((-4, 1),), ())), ops.exp(v, loop=("exp", ((-2,),), ((3,),)))]
    made += [ops.pow(2.0, v, loop=("exp2", ((1,),), ()))]
    made += [ops.argmax(x, 0, True, "uint8"), ops.cumulative_prod(i, 0, "int8")]
    made += [ops.sort(x, 0, True), ops.argsort(x, descending=True, dtype="int16")]
    made += [ops.layer_norm(x, v, v), ops.layer_norm(x, v, v, epsilon=1e-12)]
    made += [ops.searchsorted(v, x), ops.searchsorted(v, x, side="right")]
    made += [ops.tensordot(x, v, 1), ops.tensordot(x, x, ([0, 1], [0, 1])), ops.tensordot(v, v, 0)]
    made += [x.reshape(-1), x.reshape("2*n", 2), v.broadcast_to(3, 4), x.rebind("m", 4)]
    made += [x.transpose(), x.transpose(0, 0), x.T, v.unsqueeze(0).squeeze(0), v.unsqueeze(1)]
    made += [x[1:], x[1:-1:2], x[::-1, ::3], x[None, ..., 0], ops.flip(x, 0)]
    made += [
        ops.roll(x, -3, 0),
        ops.pad(x, ((1, 0), (0, 2))),
        ops.pad(x, 1, -0.0),
        ops.pad(i, 1, -1),
    ]
    made += [
        ops.tile(x, (2, 1)),
        ops.repeat(x, 3, 0),
        ops.concat([x, x[1:]]),
        ops.stack([v, v], -1),
    ]
    made += [ops.gather(x, i), ops.gather(x, i, 1), ops.take_along(v, i), ops.scatter(v, v, i)]
    made += [ops.index_update(x, v, i, 0), ops.index_update(x, 0, i), ops.item(x, (0, 1))]
    made += [ops.index_add(x, v, i, 0), ops.index_add(x, 0, i)]
    made += [ops.affine_view(x, ("n-1", 2, 4), (0, 3), ((1, 0), (1, -1), (0, 0)))]
    made += [ops.slice_update(x, v, (0, 0), (2, 4), (1, 1))]
    made += [g.range[i64](1, "n", 2), g.range[f32](0.5, -3, -0.25), g.full[f32](-0.0, ("n", 1))]
    made += [
        g.full[c64](1 - 2j, ()),
        g.full["bool"](True, 2),
        g.eye[f32]("n", "n-1"),
        g.eye[i64](3),
    ]
    g.emit(ops.eye, (), {"dtype": f32, "rows": 2, "columns": 3, "offset": -1})
    g.output(*made)
    return g


def every_dtype():
    """A graph with a constant of each dtype, of its extremes and whatever is special in it."""
    g = Graph("dtypes", rules="explicit")
    for dtype in DType:
        wide = np.complex128 if dtype.is_complex else np.float64 if dtype.format else object
        values = [dtype.max, dtype.min, 1, 0]
        if dtype.format:
            values += [float("nan"), float("inf"), -0.0, dtype.format.least, 0.1]
        with np.errstate(all="ignore"):
            if dtype.narrow and not dtype.format:
                array = np.array(values, np.int8).astype(dtype.storage)
            elif dtype is DType.tensor_float32:
                array = np.array(values[:-1], np.float32)
            else:
                array = np.array(values, wide).astype(dtype.storage)
        for shaped in (array, array[:4].reshape(2, 1, 2), array[0], array[:0].reshape(2, 0, 3)):
            g.emit(ops.constant, (), {"dtype": dtype, "value": shaped})
        g.output_of = g.input(dtype, ("n",), f"in_{dtype}")
    return g


def example_graph():
    g = Graph("question")
    x, y = g.input("int16", "n", "x"), g.input("float32", "n", "y")
    at = Location.at
    three = {"dtype": DType.int16, "value": np.array(3, np.int16), "literal": None}
    c = g.append(ops.constant, (), three, T("int16"), at("question.py", 4, 9))
    s = g.append(ops.add, (x, c), {}, x.type, at("question.py", 5, 10))
    inferred = g.infer(ops.sum, (s,), {"axis": 0, "keepdims": True})
    layered = at("question.py", 6, 10, layer="encoder/attn")
    s = g.append(ops.sum, (s,), inferred.attrs, inferred.type, layered)
    r = g.append(ops.add, (s, y), {}, y.type, at("question.py", 7, 1))
    g.output(r, c)
    return g


QUESTION = """\
graph @question rules=max (%x: int16[n], %y: float32[n]) -> (float32[n], int16[]) {
  %0 = constant {dtype=int16, value=3} : int16[] loc("question.py":4:9)
  %1 = add(%x, %0) : int16[n] loc("question.py":5:10)
  %2 = sum(%1) {keepdims=true} : int16[1] loc("question.py":6:10, layer="encoder/attn")
  %3 = add(%2, %y) : float32[n] loc("question.py":7:1)
  return %3, %0
}"""

EXPLICIT = """\
graph @question rules=explicit from=max tf32=away (%x: int16[n], %y: float32[n]) -> (float32[n]) {
  %0 = cast(%x) {to=float32} : float32[n] because(lhs of add "question.py":5:10, max: int16 -> \
float32; x[2] of concat "question.py":6:3 layer="enc", max: int16 -> float32)
  %1 = add(%0, %y) : float32[n] loc("question.py":5:10)
  return %1
}"""
