from typing import assert_type

from graphir import Graph
from graphir.runtime import Program

g = Graph("g", rules="numpy")
g.output(g.input("float32", (3,)) * 2.0)
program = Program(g, native="auto")
assert_type(program.graph, Graph)
assert_type(program.threads, int)
assert_type(program.explain(), str)
