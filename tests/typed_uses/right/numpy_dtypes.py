import numpy as np

from graphir import Graph

g = Graph("g")
g.input(np.float32, ("n",))
g.input(np.dtype("int16"), (4,))
