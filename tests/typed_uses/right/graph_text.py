from typing import assert_type

from graphir import Graph

g = Graph("g", rules="jax", tf32="away")
g.output(g.input("float32", ("n",), name="x") * 2.0)
assert_type(str(g), str)
assert_type(Graph.parse(str(g)), Graph)
