from graphir import Graph

g = Graph("g", rules="torch")
x = g.input("float32", ("n",))
with g.layer("encoder"):
    y = x + 1
g.output(x, y)
