from typing import assert_type

from graphir import Graph, Symbol

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
assert_type(y & 7, Symbol)
assert_type(y << 1, Symbol)
assert_type(~y, Symbol)
