from typing import assert_type

from graphir import Graph, Symbol, ops

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
assert_type(
    ops.layer_norm(x, g.full["float32"](1.0, (3,)), g.full["float32"](0.0, (3,)), epsilon=1e-6),
    Symbol,
)
