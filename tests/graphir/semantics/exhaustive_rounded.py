"""A run over all 2**32 inputs of the correctly rounded functions, in all tiers.

    python -m tests.graphir.semantics.exhaustive_rounded [function ...] [--step N]

takes some minutes a function, and prints a line for each with the number of wrong results.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np

from graphir import Graph, ops
from graphir.runtime import Program
from graphir.runtime.native.assembly import VectorWriter
from graphir.semantics.kernels import KERNEL_TABLES
from graphir.semantics.rounded_functions import ROUNDED_FUNCTIONS
from tests.graphir.semantics.rounded_reference import differs, reference

CHUNK = 1 << 20
MODES: list[Any] = ["off", "now"] if find_spec("llvmlite") else ["off"]
"""The modes of machine code that this environment has."""


def wrong_results(name: str, step: int) -> dict[str, int]:
    """Return the number of wrong results of a function in each tier, over every step-th input."""
    graph = Graph(name, rules="numpy", functions="rounded")
    x = graph.input("float32", ("n",), name="x")
    graph.output(getattr(ops, name)(x))
    tiers: dict[str, Any] = {
        "interpret": KERNEL_TABLES["rounded"][name],
        "NumPy": Program(graph, threads=1, native="off"),
    }
    if MODES[1:]:
        tiers["machine code"] = Program(graph, threads=1, native="now")
        tiers["machine code without fma"] = _program_without_fma(graph)
    wrong = dict.fromkeys(tiers, 0)
    for start in range(0, 1 << 32, CHUNK * step):
        bits = np.arange(start, min(start + CHUNK * step, 1 << 32), step, dtype=np.int64)
        values = bits.astype(np.uint32).view(np.float32)
        expected = reference(name, values)
        for tier, function in tiers.items():
            with np.errstate(all="ignore"):
                wrong[tier] += int(differs(function(values), expected).sum())
    return wrong


def _program_without_fma(graph: Graph) -> Program:
    """Return a program whose machine code rounds each product, as on a processor without fma."""
    program, has = Program(graph, threads=1, native="now"), VectorWriter.has

    def has_others(code: VectorWriter, *extensions: str) -> bool:
        return "fma" not in extensions and has(code, *extensions)

    with mock.patch.object(VectorWriter, "has", has_others):
        program(np.zeros(CHUNK, np.float32))  # compiles
        assert "llvm.fma" not in program.ir(0, np.zeros(CHUNK, np.float32)).llvm
    return program


def main() -> None:
    """Run the functions that the command line names, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("functions", nargs="*", default=[*ROUNDED_FUNCTIONS])
    parser.add_argument("--step", type=int, default=1)
    arguments = parser.parse_args()
    for name in arguments.functions:
        print(name, wrong_results(name, arguments.step), flush=True)


if __name__ == "__main__":
    main()
