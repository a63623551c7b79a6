"""Sources: graphs of programs that other libraries describe, a file or folder for each library."""

from typing import TYPE_CHECKING

from graphir.import_names import import_lazily

if TYPE_CHECKING:
    from graphir.runtime.sources.jax_.source import from_jax as from_jax
    from graphir.runtime.sources.onnx_.source import from_onnx as from_onnx
    from graphir.runtime.sources.torch_.source import from_torch as from_torch
    from graphir.runtime.sources.torch_.source import record_torch as record_torch

import_lazily(
    __name__,
    {
        "graphir.runtime.sources.jax_.source": "from_jax",
        "graphir.runtime.sources.onnx_.source": "from_onnx",
        "graphir.runtime.sources.torch_.source": "from_torch record_torch",
    },
)
