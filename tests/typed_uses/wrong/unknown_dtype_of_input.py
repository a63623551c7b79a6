from graphir import Graph

g = Graph("g")
g.input("flaot32", ("n",))  # wrong
