from graphir import DType, Graph

g = Graph("g")
for dtype in (DType.int8, DType.tensor_float32, DType.float8_e4m3fn):
    g.input(dtype, ("n",))
g.input("bfloat16")
g.input("complex64", (2, 3))
