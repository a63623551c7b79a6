from typing import assert_type

from graphir import Graph, Symbol

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
assert_type(x + y, Symbol)
assert_type(1 + x, Symbol)
assert_type(x / 2, Symbol)
assert_type(-x, Symbol)
assert_type(x**2, Symbol)
