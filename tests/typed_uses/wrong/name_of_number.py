from graphir import Graph

g = Graph("g")
g.input("int8", (), name=3)  # wrong
