"""Targets: exports of a graph as a program of another engine or format, each a file or folder."""

from typing import TYPE_CHECKING

from graphir.import_names import import_lazily

if TYPE_CHECKING:
    from graphir.runtime.targets.dask_.lazy_arrays import dask as dask
    from graphir.runtime.targets.emission import TargetError as TargetError
    from graphir.runtime.targets.jax_ import jax as jax
    from graphir.runtime.targets.onnx_.target import onnx as onnx
    from graphir.runtime.targets.python_.program_text import python as python
    from graphir.runtime.targets.python_.program_text import write_python as write_python
    from graphir.runtime.targets.stablehlo_.target import stablehlo as stablehlo

import_lazily(
    __name__,
    {
        "graphir.runtime.targets.dask_.lazy_arrays": "dask",
        "graphir.runtime.targets.emission": "TargetError",
        "graphir.runtime.targets.jax_": "jax",
        "graphir.runtime.targets.onnx_.target": "onnx",
        "graphir.runtime.targets.python_.program_text": "python write_python",
        "graphir.runtime.targets.stablehlo_.target": "stablehlo",
    },
)
