from typing import assert_type

from graphir import DType, Graph

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
assert_type(x.dtype, DType)
assert_type(x.rank, int)
assert_type(x.weak, bool)
