from typing import assert_type

import numpy as np

from graphir import DType, Graph, Symbol

g = Graph("g")
assert_type(g.scalar[DType.float32](1.0), Symbol)
assert_type(g.scalar(2, "int16"), Symbol)
assert_type(g.constant["int8"](np.array([1, 2])), Symbol)
assert_type(g.vector[DType.float64]([1.0, 2.0]), Symbol)
