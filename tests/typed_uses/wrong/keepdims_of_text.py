from graphir import Graph, ops

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
ops.max(x, keepdims="yes")  # wrong
