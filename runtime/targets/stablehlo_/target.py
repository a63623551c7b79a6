"""The StableHLO target: a lowered graph as a StableHLO module, in MLIR text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Graph, Symbol, ops
from graphir.passes import decompose
from graphir.passes.pipeline import lower_to_ops
from graphir.runtime.targets.emission import (
    emitter,
    lacking,
    live_symbols,
    require_no_calls,
    require_numpy_functions,
    specialized,
)
from graphir.runtime.targets.stablehlo_.control_flow import CONTROL, HloControl
from graphir.runtime.targets.stablehlo_.primitives import COMPOSITES, STABLEHLO
from graphir.runtime.targets.stablehlo_.values import (
    HloBody,
    HloValue,
    cast_values,
    location_text,
    signature_text,
    type_text,
)
from graphir.semantics.evaluation import Evaluation, settings_of


def stablehlo(graph: Graph, sizes: Mapping[str, int] | None = None) -> str:
    """Return the text of a module whose function `main` computes a graph at known sizes.

    The target lowers the graph first, and specializes its named dims to `sizes`. Signed integers
    are signless in MLIR; unsigned integers, index and address are `uiN`. tensor_float32 is rounded
    f32. Each line has the `loc` of the program's line, named by its layer; an inserted cast has the
    `loc`s of the uses that it serves, named by operand, op and rule. Inverse and hyperbolic
    functions, erf, erfc and next_after are CHLO ops, which engines legalize. Indices out of range,
    and integers to a negative power, raise no error. Raises TargetError if an op is undefined at
    these sizes, and for a dim without a size.
    """
    lowered_graph = lower_to_ops(graph)
    require_no_calls("StableHLO", lowered_graph)
    require_numpy_functions("StableHLO", lowered_graph)
    return module_text(specialized("StableHLO", lowered_graph, sizes))


def module_text(graph: Graph) -> str:
    """Return the module of a graph of known sizes without lowering; all casts must be explicit."""
    graph = decompose(graph, COMPOSITES)
    body, arguments, parameters = HloBody(), list[HloValue](), list[str]()
    for position, symbol in enumerate(graph.inputs):
        type_ = symbol.type.with_dtypes(_passed)
        arguments.append(HloValue(body, f"%arg{position}", type_))
        parameters.append(f"%arg{position}: {type_text(type_)} {body.at(location_text(symbol))}")
    return _function(graph.name, body, parameters, _outputs(body, graph, arguments))


def _passed(dtype: DType) -> DType:
    """Return the dtype of an input before its load conversion."""
    return DType.from_numpy(dtype.storage) if dtype.emulated else dtype


def _outputs(body: HloBody, graph: Graph, arguments: Sequence[HloValue]) -> list[HloValue]:
    """Add the lines of a graph, the main one or one of control flow, and return its outputs."""
    values: dict[Symbol, HloValue] = dict(zip(graph.inputs, arguments, strict=True))
    parts: dict[Symbol, list[HloValue]] = {}
    for symbol in live_symbols(graph):
        if symbol.op is ops.input and values[symbol].dtype is symbol.dtype:
            continue
        if symbol.op is ops.control.part:
            values[symbol] = parts[symbol.args[0]][symbol.attrs["index"]]
            continue
        body.at(location_text(symbol))
        args = [values[arg] for arg in ((symbol,) if symbol.op is ops.input else symbol.args)]
        if symbol.op.kind == "control":
            control = HloControl(body, symbol, partial(_nested_outputs, body))
            parts[symbol] = CONTROL[symbol.op.name](control, args)
        else:
            values[symbol] = _value(body, symbol, args)
    return [values[output] for output in graph.outputs]


def _nested_outputs(body: HloBody, graph: Graph, arguments: Sequence[HloValue]) -> list[HloValue]:
    """Add the lines of a graph of control flow; the next lines have the location of the op."""
    location = body.location
    outputs = _outputs(body, graph, arguments)
    body.location = location
    return outputs


def _function(
    name: str, body: HloBody, parameters: Sequence[str], outputs: Sequence[HloValue]
) -> str:
    """Return the module of a body; its own location is that of the last line."""
    types = [value.type for value in outputs]
    names = ", ".join(value.name for value in outputs)
    last = f"return {names} : {', '.join(map(type_text, types))} {body.location}"
    head = f"func.func public @main({', '.join(parameters)}) -> {signature_text(types)}"
    lines = indent("\n".join([*body.lines, last]), "    ")
    module = "module @_" + re.sub(r"\W", "_", name, flags=re.ASCII)
    end = "\n".join([f"}} {body.location}", *body.locations])
    return f"{module} {{\n  {head} {{\n{lines}\n  }} {body.location}\n{end}\n"


def _value(body: HloBody, symbol: Symbol, args: Sequence[HloValue]) -> HloValue:
    """Return the value of a symbol: an op's result, or an input after its load conversion.

    A tensor_float32 input is rounded, as the caller may pass any float32.
    """
    op, tf32 = symbol.op, symbol.graph.tf32
    if op in (ops.cast, ops.input):
        return cast_values(args[0], symbol.dtype, tf32)
    if op is ops.shape_of or op.kind == "creation":
        return body.constant(_numpy_constant(symbol), symbol.dtype)
    row = emitter("StableHLO", STABLEHLO, symbol)
    settings = settings_of(op, symbol.dtype, symbol.attrs, {}, tf32)
    try:
        result = row(*args, **settings)
    except NotImplementedError as error:
        raise lacking("StableHLO", symbol, str(error), "give other sizes") from None
    return cast_values(result, symbol.dtype, tf32)


def _numpy_constant(symbol: Symbol) -> NDArray[Any]:
    """Return the constant result of an op that depends on no value, computed by NumPy."""
    inference = symbol.graph.infer(symbol.op, symbol.args, symbol.attrs)
    dtypes: Sequence[DType] = [arg.dtype for arg in symbol.args]
    zeros = [np.broadcast_to(np.zeros((), x.dtype.storage), _sizes(x)) for x in symbol.args]
    return Evaluation(symbol.op, inference, dtypes, {}, symbol.graph.tf32)(zeros)


def _sizes(symbol: Symbol) -> Any:
    return symbol.shape
