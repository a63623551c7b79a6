"""Execution of graphs: interpreter, compiled programs, jit, recordings, audits, targets, CLI."""

import runtime.native  # noqa: F401  # pyright: ignore[reportUnusedImport] -- provides the tier
from runtime.audit import audit
from runtime.execution import execute
from runtime.interpreter import interpret
from runtime.jit.jit import jit
from runtime.program import Program
from runtime.recording import Recording, record
from runtime.sources import from_jax, from_onnx, from_torch

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
]


def __dir__() -> list[str]:
    return sorted({*__all__, *({"array_api", "targets"} & globals().keys())})
