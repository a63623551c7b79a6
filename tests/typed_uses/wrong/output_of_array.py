import numpy as np

from graphir import Graph

g = Graph("g")
g.output(np.ones(3))  # wrong
