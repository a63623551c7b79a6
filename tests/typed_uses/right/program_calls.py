import numpy as np

from graphir import Graph
from graphir.runtime import Program

g = Graph("g", rules="numpy")
x = g.input("float32", ("n",), name="x")
g.output(x * 2.0)
program = Program(g, threads=1, block=1024, native="off")
out = np.empty(3, np.float32)
program(np.ones(3, np.float32), out=out)
