from graphir import DType, Graph, TensorType

g = Graph("g", in_types=[TensorType(DType.float32, ("n",)), TensorType("int8", ())])
g.output(g.inputs[0] + 1.0)
