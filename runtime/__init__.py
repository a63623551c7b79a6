"""Execution of graphs: interpreter, compiled programs, jit, recordings, audits, targets, CLI."""

from typing import TYPE_CHECKING

from graphir.import_names import give_short_name, import_lazily

if TYPE_CHECKING:
    from graphir.runtime import array_api as array_api
    from graphir.runtime import targets as targets
    from graphir.runtime.audit import audit as audit
    from graphir.runtime.interpreter import interpret as interpret
    from graphir.runtime.jit.jit import jit as jit
    from graphir.runtime.program import Program as Program
    from graphir.runtime.program.program import execute as execute
    from graphir.runtime.recording import Recording as Recording
    from graphir.runtime.recording import record as record
    from graphir.runtime.sources import from_jax as from_jax
    from graphir.runtime.sources import from_onnx as from_onnx
    from graphir.runtime.sources import from_torch as from_torch
    from graphir.runtime.sources import record_torch as record_torch

import_lazily(
    __name__,
    {
        "graphir.runtime.audit": "audit",
        "graphir.runtime.interpreter": "interpret",
        "graphir.runtime.jit.jit": "jit",
        "graphir.runtime.program": "Program",
        "graphir.runtime.program.program": "execute",
        "graphir.runtime.recording": "Recording record",
        "graphir.runtime.sources": "from_jax from_onnx from_torch record_torch",
    },
    "array_api targets",
)
give_short_name(__name__)
