"""All programs of this folder."""

from __future__ import annotations

import importlib

from tests.planted_faults.program import Program

KINDS = (
    "wrap",
    "overflow",
    "cancellation",
    "absorption",
    "accumulation",
    "unsigned_subtraction",
    "float16_softmax",
    "int32_through_float32",
    "variance_by_squares",
    "out_of_range",
)
_MODULES = [importlib.import_module(f"tests.planted_faults.{kind}") for kind in KINDS]
PROGRAMS = [
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Program)
]
FAULTY = [program for program in PROGRAMS if program.operand is not None]
CLEAN = [program for program in PROGRAMS if program.operand is None]
