import numpy as np

from graphir import Graph, TensorType, trace


def norm(x, eps):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + eps)


traced = trace(norm, TensorType("float32", ("n", 3)), float, rules="jax")
graph: Graph = traced.graph
assert len(graph.inputs) == 2
