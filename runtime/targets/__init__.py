"""Targets: exports of a graph as a program of another engine or format, each a file or folder."""

from graphir.runtime.targets.dask_.lazy_arrays import dask
from graphir.runtime.targets.emission import TargetError
from graphir.runtime.targets.jax_ import jax
from graphir.runtime.targets.onnx_.target import onnx
from graphir.runtime.targets.python_.program_text import python
from graphir.runtime.targets.stablehlo_.target import stablehlo

__all__ = ["TargetError", "dask", "jax", "onnx", "python", "stablehlo"]
