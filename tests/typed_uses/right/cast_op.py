from typing import assert_type

from graphir import DType, Graph, Symbol, ops

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
assert_type(ops.cast(x, to="float16"), Symbol)
assert_type(ops.cast(y, to=DType.float64), Symbol)
