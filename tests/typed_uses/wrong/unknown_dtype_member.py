from graphir import DType, Graph

g = Graph("g")
g.input(DType.float128)  # wrong
