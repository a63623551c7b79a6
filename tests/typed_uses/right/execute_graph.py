import numpy as np

from graphir import Graph
from graphir.runtime import execute

g = Graph("g", rules="numpy")
x = g.input("float32", ("n",), name="x")
g.output(x * 2.0)
result = execute(g, np.ones(3, np.float32))
named = execute(g, x=np.ones(3, np.float32))
assert result.shape == named.shape
