"""The StableHLO target: a lowered graph as a module of StableHLO, in MLIR's text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphir import DType, Graph, ops
from passes import lower
from runtime.targets.emission import emitter, needed
from runtime.targets.specialize import specialized
from runtime.targets.stablehlo_ops import STABLEHLO
from runtime.targets.stablehlo_text import Body, Value, location_text, reason, type_text


def stablehlo(graph: Graph, sizes: Mapping[str, int] | None = None) -> str:
    """The text of a module whose function `main` computes what a graph does, at known sizes.

    The graph is lowered first, and its named dims take their `sizes`. Each line has the `loc` of
    the program's line; an inserted cast also the use that it serves, and by which rule. Integers
    are signless, unsigned ones `uiN`; tensor_float32 is f32. Conversions from 64 bits to 16 are
    rounded as the engine does, in XLA twice. Raises TargetError for an op that StableHLO has not,
    and for a dim without a size.
    """
    return _module(specialized("StableHLO", lower(graph), sizes))


def _module(graph: Graph) -> str:
    body, values = Body(), dict[int, Value]()
    for position, symbol in enumerate(graph.inputs):
        values[symbol.index] = Value(f"%arg{position}", symbol.type)
    parameters = ", ".join(f"{one.name}: {type_text(one.type)}" for one in values.values())
    for symbol in needed(graph):
        body.location = location_text(symbol.location, reason(symbol))
        args = [values[arg.index] for arg in symbol.args]
        if symbol.op is not ops.input:
            values[symbol.index] = emitter("StableHLO", STABLEHLO, symbol)(body, symbol, args)
        elif symbol.dtype is DType.tensor_float32:
            bits = {"exponent_bits": "8 : i32", "mantissa_bits": "10 : i32"}
            given = values[symbol.index]
            values[symbol.index] = body.op("reduce_precision", [given], symbol.type, **bits)
    found = [values[symbol.index] for symbol in graph.outputs]
    types = ", ".join(type_text(one.type) for one in found)
    body.lines.append(f"return {', '.join(one.name for one in found)} : {types}")
    lines = "\n".join(f"    {line}" for line in body.lines)
    name = re.sub(r"\W", "_", graph.name, flags=re.ASCII)
    head = f"  func.func public @main({parameters}) -> ({types}) {{"
    return f"module @_{name} {{\n{head}\n{lines}\n  }}\n}}\n"
