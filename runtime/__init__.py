"""Execution of graphs: interpreter, compiled programs, jit, recordings, audits, targets, CLI."""

import graphir.runtime.native  # noqa: F401  # pyright: ignore[reportUnusedImport] -- provides the tier
from graphir.import_names import give_short_name
from graphir.runtime.audit import audit
from graphir.runtime.interpreter import interpret
from graphir.runtime.jit.jit import jit
from graphir.runtime.program import Program
from graphir.runtime.program.program import execute
from graphir.runtime.recording import Recording, record
from graphir.runtime.sources import from_jax, from_onnx, from_torch, record_torch

__all__ = [
    "Program",
    "Recording",
    "audit",
    "execute",
    "from_jax",
    "from_onnx",
    "from_torch",
    "interpret",
    "jit",
    "record",
    "record_torch",
]

give_short_name(__name__)


def __dir__() -> list[str]:
    return sorted({*__all__, *({"array_api", "targets"} & globals().keys())})
