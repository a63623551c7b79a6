from graphir import Graph
from graphir.runtime import Program

g = Graph("g", rules="numpy")
x = g.input("float32", (3,), name="x")
g.output(x * 2.0)
Program(x)  # wrong
