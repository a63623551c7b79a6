from graphir import Graph

g = Graph("g")
g.scalar(1, "integer16")  # wrong
