"""Sources: graphs of programs that other libraries describe, a file or folder for each library."""

from graphir.runtime.sources.jax_.source import from_jax
from graphir.runtime.sources.onnx_.source import from_onnx
from graphir.runtime.sources.torch_.source import from_torch, record_torch

__all__ = ["from_jax", "from_onnx", "from_torch", "record_torch"]
