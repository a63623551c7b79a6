from graphir import Graph
from graphir.runtime import execute

g = Graph("g", rules="numpy")
x = g.input("float32", (3,), name="x")
g.output(x * 2.0)
execute(g, "ones")  # wrong
