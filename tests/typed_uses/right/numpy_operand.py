from typing import assert_type

import numpy as np

from graphir import Graph, Symbol

g = Graph("g", rules="numpy")
x = g.input("float32", ("n", 3), name="x")
y = g.input("int16", ("n", 3), name="y")
assert_type(x + np.ones(3, np.float32), Symbol)
assert_type(x * np.float32(2), Symbol)
