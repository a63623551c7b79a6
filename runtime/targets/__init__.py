"""Ways out: a graph as a program of other engines and formats, a module for each."""

from runtime.targets.dask_ import dask
from runtime.targets.emission import TargetError
from runtime.targets.jax_ import jax
from runtime.targets.onnx_ import onnx
from runtime.targets.python import python
from runtime.targets.stablehlo import stablehlo

__all__ = ["TargetError", "dask", "jax", "onnx", "python", "stablehlo"]
