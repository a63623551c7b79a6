from typing import assert_type

import numpy as np

from graphir import Graph
from graphir.passes import CastReport, cast_report, implicit_cast, lower
from graphir.runtime import interpret

g = Graph("g", rules="numpy")
x, y = g.input("float32", (3,)), g.input("int16", (3,))
g.output(x + y)
assert_type(implicit_cast(g), Graph)
assert_type(lower(g), Graph)
assert_type(cast_report(g), CastReport)
interpret(g, np.ones(3, np.float32), np.ones(3, np.int16))
