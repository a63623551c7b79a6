"""The StableHLO target: a lowered graph as a StableHLO module, in MLIR text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from textwrap import indent
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.passes import decompose
from graphir.public import DType, Graph, Symbol, TensorType, ops
from graphir.runtime.targets.emission import (
    emitter,
    evaluate_graph,
    lacking,
    lowered_for,
    specialized,
)
from graphir.runtime.targets.stablehlo_.primitives import COMPOSITES, STABLEHLO
from graphir.runtime.targets.stablehlo_.values import (
    HloBody,
    HloValue,
    Sizes,
    cast_values,
    ints,
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
    `loc` of each use that it serves, named by operand, op and rule. Inverse and hyperbolic
    functions, erf, erfc and next_after are CHLO ops, which engines legalize. Indices out of range,
    and integers to a negative power, raise no error. Raises TargetError if an op is undefined at
    these sizes, and for a dim without a size.
    """
    return module_text(specialized("StableHLO", lowered_for("StableHLO", graph), sizes))


def module_text(graph: Graph) -> str:
    """Return the module of a graph of known sizes without lowering; all casts must be explicit."""
    graph = decompose(graph, COMPOSITES)
    body, values, parameters = HloBody(), dict[Symbol, HloValue](), list[str]()
    for position, symbol in enumerate(graph.inputs):
        dtype = symbol.dtype
        passed = DType.from_numpy(dtype.storage) if dtype.emulated else dtype
        value = HloValue(body, f"%arg{position}", symbol.type.cast(passed))
        location = body.at(location_text(symbol))
        parameters.append(f"{value.name}: {type_text(value.type)} {location}")
        # The caller may pass any float32 as a tensor_float32.
        values[symbol] = cast_values(value, dtype, graph.tf32)
    outputs = evaluate_graph(graph, values, partial(_value, body))
    return _function(graph.name, body, parameters, outputs)


def _nested_outputs(body: HloBody, graph: Graph, arguments: Sequence[HloValue]) -> list[HloValue]:
    """Add the lines of a graph of control flow; the next lines have the location of the op."""
    location = body.location
    values = dict(zip(graph.inputs, arguments, strict=True))
    outputs = evaluate_graph(graph, values, partial(_value, body))
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


def _value(body: HloBody, symbol: Symbol, args: list[HloValue]) -> HloValue | list[HloValue]:
    """Add the lines of a symbol, and return its value, or the parts of one of control flow."""
    op, tf32 = symbol.op, symbol.graph.tf32
    body.at(location_text(symbol))
    if op.kind == "control":
        return CONTROL[op.name](HloControl(body, symbol, partial(_nested_outputs, body)), args)
    if op is ops.cast:
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


# -- control flow: the graphs are regions that use values from outside

Values: TypeAlias = list[HloValue]


class HloControl(NamedTuple):
    """An op of control flow to write.

    `run(graph, arguments)` adds the lines that compute a graph, and returns its outputs.
    """

    body: HloBody
    symbol: Symbol
    run: Callable[[Graph, Sequence[HloValue]], Values]


def _cond(op: HloControl, args: Values) -> Values:
    """Return the results of `case`, which runs its last branch for an index out of range."""
    branches: Sequence[Graph] = op.symbol.attrs["branches"]
    index, operands = args[0], args[1:]
    if index.dtype is not DType.bool:
        index = index.convert(DType.int32) if index.dtype.narrow else index
        last = min(len(branches) - 1, int(index.dtype.max))
        index = index.op("minimum", last).op("maximum", 0)
    regions = [op.body.region([], partial(op.run, branch, operands)) for branch in branches]
    index = index.convert(DType.int32)
    return op.body.line("case", [index], op.symbol.type.parts, *regions)


def _while_loop(op: HloControl, args: Values) -> Values:
    condition, step = op.symbol.attrs["condition"], op.symbol.attrs["body"]
    count = len(op.symbol.type.parts)
    captured = args[count:]
    return _loop(
        args[:count],
        lambda *values: op.run(condition, [*values, *captured])[0],
        lambda *values: op.run(step, [*values, *captured]),
    )


def _scan(op: HloControl, args: Values) -> Values:
    """Return the results of a loop that reads a row and updates the stacked results.

    Beside its results the loop carries the number of rows that it has read.
    """
    attrs, types = op.symbol.attrs, op.symbol.type.parts
    carries, ends = attrs["carries"], attrs["carries"] + attrs["scanned"]
    scanned, captured = args[carries:ends], args[ends:]
    length = scanned[0].shape[0] if scanned else attrs["length"]
    stacked = [_zeros(op.body, type_) for type_ in types[carries:]]
    if not length:
        return [*args[:carries], *stacked]

    def step(iteration: HloValue, *values: HloValue) -> Values:
        place = (-iteration) + (length - 1) if attrs["reverse"] else iteration
        rows = [_row(x, place) for x in scanned]
        outputs = op.run(attrs["body"], [*values[:carries], *rows, *captured])
        updates = zip(values[carries:], outputs[carries:], strict=True)
        return [iteration + 1, *outputs[:carries], *(_updated(*pair, place) for pair in updates)]

    def is_row(iteration: HloValue, *values: HloValue) -> HloValue:
        return iteration < length

    iteration = op.body.constant(np.zeros((), np.int64), DType.int64)
    return _loop([iteration, *args[:carries], *stacked], is_row, step)[1:]


def _loop(
    values: Sequence[HloValue],
    condition: Callable[..., HloValue],
    step: Callable[..., Values],
) -> Values:
    types = [value.type for value in values]
    body = values[0].body
    regions = [body.region(types, condition), body.region(types, step)]
    return body.line("while", values, types, *regions)


def _zeros(body: HloBody, type_: TensorType) -> HloValue:
    zero = body.constant(np.zeros((), type_.dtype.storage), type_.dtype)
    return zero.broadcast(cast(Sizes, type_.shape))


def _row(x: HloValue, place: HloValue) -> HloValue:
    """Return the row of x at a place of its first axis."""
    sizes = (1, *x.shape[1:])
    operands = [x, *_corner(x, place)]
    type_ = TensorType(x.dtype, sizes)
    row = x.body.emit("dynamic_slice", operands, type_, slice_sizes=ints(sizes))
    return row.reshape(x.shape[1:])


def _updated(x: HloValue, row: HloValue, place: HloValue) -> HloValue:
    """Return x with a row at a place of its first axis."""
    operands = [x, row.reshape((1, *row.shape)), *_corner(x, place)]
    return x.body.emit("dynamic_update_slice", operands, x.type)


def _corner(x: HloValue, place: HloValue) -> Values:
    """Return the indices of the first element of a row."""
    zeros = [place.number(0)] * (x.rank - 1) if x.rank > 1 else []
    return [place, *zeros]


CONTROL: Mapping[str, Callable[[HloControl, Values], Values]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
}
"""The function of each op of control flow."""
