"""Targets: exports of a graph as a program of another engine or format, with a module for each."""

from runtime.targets.dask_.target import dask
from runtime.targets.emission import TargetError
from runtime.targets.jax_.target import jax
from runtime.targets.onnx_.target import onnx
from runtime.targets.python_.target import python
from runtime.targets.stablehlo_.target import stablehlo

__all__ = ["TargetError", "dask", "jax", "onnx", "python", "stablehlo"]
