"""The ONNX target: a lowered graph as a model, in which each cast has its reason and line."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from graphir.display import printable
from graphir.passes import decompose
from graphir.passes.analysis.casts.conversion import cast_conversion
from graphir.passes.rewriter import origins_of
from graphir.public import DType, Graph, Origin, Symbol, ops
from graphir.runtime.targets.emission import (
    dtypes_of,
    emitter,
    evaluate_graph,
    lacking,
    live_arrays,
    lowered_for,
    specialized,
)
from graphir.runtime.targets.onnx_.body import OPSET, OnnxBody, onnx_dtype
from graphir.runtime.targets.onnx_.control_flow import CONTROL, ControlNode
from graphir.runtime.targets.onnx_.primitives import COMPOSITES, ONNX
from graphir.runtime.targets.onnx_.values import OnnxValue, cast_values
from graphir.semantics.evaluation import machine

IR_VERSION = 13


def onnx(graph: Graph, sizes: Mapping[str, int] | None = None) -> Any:
    """Return an onnx.ModelProto that computes the outputs of a graph.

    The target lowers the graph first, so arithmetic on bfloat16, float16 and similar dtypes is in
    float32 with a rounding after each op: onnxruntime has no bfloat16 arithmetic on the CPU. The
    model's metadata lists these dtypes. Named dims are dim_params, or have their `sizes` if given.
    Inputs keep their names, and outputs are output0, output1, ...; index and address are uint64,
    tensor_float32 is float32. Each node has the program's line in its metadata_props; a cast also
    has the reason, rule and path of each use that it serves. Unfit sizes, and an integer to a
    negative power, fail at run time as a Gather out of range. Raises ImportError without onnx, and
    TargetError for complex arithmetic, for dtypes that ONNX lacks, and if nothing binds a dim.
    """
    lowered_graph = lowered_for("ONNX", graph, "onnx")
    return model(specialized("ONNX", lowered_graph, sizes) if sizes else lowered_graph)


def model(graph: Graph) -> Any:
    """Return the model of a graph without lowering, which is valid if all casts are explicit."""
    for symbol in live_arrays(graph):
        _check(symbol)
    graph = decompose(graph, COMPOSITES)
    body = OnnxBody(graph)
    values = {symbol: _entered(body, symbol) for symbol in graph.inputs}
    evaluate_graph(graph, values, partial(_value, body))
    return _assembled(body, values)


# -- checks


def _check(symbol: Symbol) -> None:
    """Raise TargetError for a symbol that the format cannot express."""
    if symbol.dtype in NO_DTYPE:
        raise lacking("ONNX", symbol, f"has no {symbol.dtype} at opset {OPSET}", _NARROW_FIX)
    computes = symbol.op.computes or symbol.op in (ops.cast, ops.range, ops.eye)
    if computes and any(operand.dtype.is_complex for operand in (symbol, *symbol.args)):
        raise lacking("ONNX", symbol, "moves complex numbers alone", _COMPLEX_FIX)


NO_DTYPE = (
    *(DType.float8_e3m4, DType.float8_e4m3, DType.float8_e4m3b11fnuz),
    *(DType.float6_e2m3fn, DType.float6_e3m2fn),
)
_NARROW_FIX = "cast to float8_e4m3fn or float16"
_COMPLEX_FIX = "compute with real and imaginary parts in two real arrays"


# -- values


def _entered(body: OnnxBody, symbol: Symbol) -> OnnxValue:
    """Return an input, with assertions of sizes it does not bind, and tensor_float32 rounded."""
    _tell(body, symbol)
    value = body.inputs[symbol]
    if not all(isinstance(dim, int) or body.binds(symbol, i) for i, dim in enumerate(symbol.shape)):
        value = body.shaped(value, symbol.shape)
    if symbol.dtype.emulated:
        return cast_values(value, value.dtype, symbol.dtype, symbol.graph.tf32)
    return value


def _nested_outputs(
    body: OnnxBody, graph: Graph, arguments: Sequence[OnnxValue]
) -> list[OnnxValue]:
    """Add the nodes of a graph of control flow, and return its outputs.

    The next nodes have the metadata of the op of control flow.
    """
    outside = body.prefix, body.metadata, body.doc
    values = dict(zip(graph.inputs, arguments, strict=True))
    outputs = evaluate_graph(graph, values, partial(_value, body))
    body.prefix, body.metadata, body.doc = outside
    return outputs


def _value(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> Any:
    """Add the nodes of a symbol, and return its value, or the parts of one of control flow."""
    _tell(body, symbol)
    if symbol.op.kind == "control":
        node = ControlNode(body, symbol, partial(_nested_outputs, body))
        return CONTROL[symbol.op.name](node, args)
    result = emitter("ONNX", ONNX, symbol)(body, symbol, args)
    if result.dtype is not onnx_dtype(symbol.dtype):  # places and sizes, which ONNX gives as int64
        return cast_values(result, result.dtype, symbol.dtype, symbol.graph.tf32)
    return result


# -- the model


def _assembled(body: OnnxBody, values: Mapping[Symbol, Any]) -> Any:
    graph, helper = body.graph, body.helper
    body.prefix, body.metadata, body.doc = "output", {}, ""
    outputs = _name_outputs(body, [values[symbol] for symbol in graph.outputs])
    inputs = [body.described(body.inputs[x].name, x.type) for x in graph.inputs]
    results = [body.described(name, x.type) for name, x in zip(outputs, graph.outputs, strict=True)]
    symbols_by_name = {x.name: symbol for symbol, x in values.items() if isinstance(x, OnnxValue)}
    value_infos = [
        body.described(name, symbol.type)
        for name, symbol in symbols_by_name.items()
        if name in body.node_outputs
    ]
    whole = helper.make_graph(
        body.nodes,
        printable(graph.name, None) or "graph",
        inputs,
        results,
        body.initializers,
        value_info=value_infos,
    )
    opset = [helper.make_opsetid(*pair) for pair in body.opsets.items()]
    new = helper.make_model(
        whole, opset_imports=opset, ir_version=IR_VERSION, producer_name="graphir"
    )
    helper.set_metadata_props(new, _notes(graph))
    return new


def _name_outputs(body: OnnxBody, values: Sequence[OnnxValue]) -> list[str]:
    """Name the outputs output0, output1, ... in all nodes, and return these names."""
    renames = {
        name: body.names.new(f"output{place}") for place, name in enumerate(body.distinct(values))
    }
    _rename(body.nodes, renames)
    body.node_outputs -= {*renames}
    return [*renames.values()]


def _rename(nodes: Iterable[Any], renames: Mapping[str, str]) -> None:
    """Rename the inputs and outputs of nodes, and of the nodes in their subgraphs."""
    for node in nodes:
        node.input[:] = [renames.get(name, name) for name in node.input]
        node.output[:] = [renames.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g.node, renames)


def _notes(graph: Graph) -> dict[str, str]:
    """Return the metadata of the model: the dtype in which each legalized dtype is computed."""
    legal = {
        f"graphir.legalized.{dtype}": f"computed in {machine(dtype)}, rounded after each op"
        for dtype in dtypes_of(graph)
        if machine(dtype) is not dtype
    }
    return dict(sorted(legal.items()))


# -- metadata of nodes


def _tell(body: OnnxBody, symbol: Symbol) -> None:
    """Set the metadata of the next nodes to those of a symbol."""
    layer = f"{printable(symbol.location.layer, None)}/" if symbol.location.layer else ""
    body.prefix = f"{layer}{symbol.op.name}_{symbol.index}"
    body.metadata = {"graphir.location": str(symbol.location)}
    lines: list[str] = []
    for number, use in enumerate(map(_use, origins_of(symbol)), 1):
        suffix = f".{number}" if number > 1 else ""
        body.metadata |= {f"graphir.{name}{suffix}": text for name, text in use.items()}
        lines.append(f"{use['reason']} at {use['location']}, {use['rule']}: {use['path']}")
    body.doc = "\n".join(lines)


def _use(origin: Origin) -> dict[str, str]:
    cast_facts = cast_conversion(
        origin.operand, origin.op, origin.rule, origin.source, origin.target, None
    )
    return {
        "kind": cast_facts.kind,
        "reason": f"{origin.operand} of {origin.op}",
        "rule": origin.rule,
        "path": " -> ".join(map(str, cast_facts.path)),
        "loss": str(cast_facts.loss),
        "location": str(origin.location),
    }
