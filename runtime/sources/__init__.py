"""Sources: graphs of programs that other libraries describe, a file or folder for each library."""

from runtime.sources.jax_.source import from_jax
from runtime.sources.onnx_.source import from_onnx
from runtime.sources.torch_.source import from_torch

__all__ = ["from_jax", "from_onnx", "from_torch"]
