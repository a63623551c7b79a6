from typing import assert_type

import numpy as np

from graphir import Graph
from graphir.passes import CastReport
from graphir.runtime import audit

g = Graph("g", rules="numpy")
x, y = g.input("float16", (3,)), g.input("int16", (3,))
g.output((x * y).sum())
report = audit(g, np.ones(3, np.float16), np.ones(3, np.int16), blame=False)
assert_type(report, CastReport)
