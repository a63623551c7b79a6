from typing import assert_type

from graphir import Graph, Symbol

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
assert_type(x.sum(axis=0), Symbol)
assert_type(x.reshape(-1), Symbol)
assert_type(x.astype("float64"), Symbol)
assert_type(x.clip(0, 1), Symbol)
