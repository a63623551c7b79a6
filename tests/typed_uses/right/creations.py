from typing import assert_type

from graphir import DType, Graph, Symbol

g = Graph("g")
assert_type(g.range[DType.int32](0, 10, 2), Symbol)
assert_type(g.full["float16"](0.5, (2, 3)), Symbol)
