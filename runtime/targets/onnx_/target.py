"""The ONNX target: a lowered graph as a model, in which each cast has its reason and line."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from graphir.display import printable
from graphir.ops.dims import Size
from graphir.passes import decompose
from graphir.passes.analysis.casts.conversion import cast_conversion
from graphir.passes.rewriter import origins_of
from graphir.public import DType, Graph, GraphError, Origin, Symbol, TensorType, ops
from graphir.runtime.sources.onnx_.bound_node import BoundNode
from graphir.runtime.targets.emission import (
    dtypes_of,
    emitter,
    evaluate_graph,
    lacking,
    live_arrays,
    lowered_for,
    specialized,
)
from graphir.runtime.targets.onnx_.body import OPSET, OnnxBody, onnx_dtype, passing_dtype
from graphir.runtime.targets.onnx_.primitives import COMPOSITES, ONNX, reversed_along, with_shape
from graphir.runtime.targets.onnx_.values import OnnxValue, cast_values, compared
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


# -- control flow: subgraphs of If and Loop use values from outside by their names
#
# Values of dtypes for which onnxruntime has no subgraphs enter and leave them as wider dtypes.

Values: TypeAlias = list[OnnxValue]

_COUNT, _TRUTH = TensorType(DType.int64), TensorType(DType.bool)


class ControlNode(NamedTuple):
    """An op of control flow to write.

    `run(graph, arguments)` adds the nodes that compute a graph, and returns its outputs.
    """

    body: OnnxBody
    symbol: Symbol
    run: Callable[[Graph, Sequence[OnnxValue]], Values]

    @property
    def types(self) -> Sequence[TensorType]:
        """The types of the results."""
        return self.symbol.type.parts

    def subgraph(
        self,
        name: str,
        parameters: Sequence[TensorType],
        results: Sequence[TensorType],
        function: Callable[..., Sequence[OnnxValue]],
    ) -> Any:
        """Return a GraphProto with the nodes that a function adds for parameters of some types."""
        body = self.body
        with body.scope():
            names = [body.names.new(f"{body.prefix}/{name}/input") for _ in parameters]
            arguments = [
                OnnxValue(body, own, passing_dtype(type_.dtype)).cast(onnx_dtype(type_.dtype))
                for own, type_ in zip(names, parameters, strict=True)
            ]
            outputs = body.distinct(_passing(function(*arguments)))
            nodes = body.nodes
        inputs = _described(body, names, parameters)
        return body.helper.make_graph(nodes, name, inputs, _described(body, outputs, results))

    def results(
        self, kind: str, args: Sequence[OnnxValue], types: Sequence[TensorType], **attrs: Any
    ) -> Values:
        """Add the node of the op, and return its results."""
        dtypes = [passing_dtype(type_.dtype) for type_ in types]
        values = self.body.outputs_of(kind, args, dtypes, attrs)
        return [x.cast(onnx_dtype(t.dtype)) for x, t in zip(values, types, strict=True)]


def _passing(values: Sequence[OnnxValue]) -> Values:
    """Return values as they enter or leave a subgraph."""
    return [value.cast(passing_dtype(value.dtype)) for value in values]


def _described(body: OnnxBody, names: Sequence[str], types: Sequence[TensorType]) -> list[Any]:
    passing = (type_.with_dtypes(_entering) for type_ in types)
    return [body.described(*pair) for pair in zip(names, passing, strict=True)]


def _entering(dtype: DType) -> DType:
    """Return the dtype, or a wider dtype as which it enters a subgraph."""
    return passing_dtype(dtype) if dtype.narrow else dtype


def _cond(node: ControlNode, args: Sequence[OnnxValue]) -> Values:
    index, operands = args[0], args[1:]
    branches: Sequence[Graph] = node.symbol.attrs["branches"]
    return _branch(node, index, operands, 0, min(len(branches), int(index.dtype.max) + 1))


def _branch(
    node: ControlNode, index: OnnxValue, operands: Sequence[OnnxValue], first: int, end: int
) -> Values:
    """Return the results of one of the branches from `first` on and before `end`.

    It halves the range with each If, so that an index out of range gives the first or last branch.
    """
    if end - first == 1:
        return node.run(node.symbol.attrs["branches"][first], operands)
    middle = (first + end) // 2
    if index.dtype is DType.bool:
        test = ~index
    else:
        test = compared("Less")(index, node.body.number(middle, index.dtype))
    halves = {"then_branch": (first, middle), "else_branch": (middle, end)}
    graphs = {
        name: node.subgraph(name, [], node.types, partial(_branch, node, index, operands, *half))
        for name, half in halves.items()
    }
    return node.results("If", [test], node.types, **graphs)


def _while_loop(node: ControlNode, args: Sequence[OnnxValue]) -> Values:
    """Return the results of a Loop whose body computes the condition for the next iteration."""
    condition, body = node.symbol.attrs["condition"], node.symbol.attrs["body"]
    count = len(node.types)
    initial, captured = args[:count], args[count:]

    def step(_: OnnxValue, __: OnnxValue, *values: OnnxValue) -> Values:
        new = node.run(body, [*values, *captured])
        return [*node.run(condition, [*new, *captured]), *new]

    inputs = [_COUNT, _TRUTH, *node.types]
    graph = node.subgraph("body", inputs, [_TRUTH, *node.types], step)
    verdict = node.run(condition, args)
    unlimited = OnnxValue(node.body, "", DType.int64)
    operands = [unlimited, *verdict, *_passing(initial)]
    return node.results("Loop", operands, node.types, body=graph)


class _Rows(NamedTuple):
    """The operands of a scan by their roles, and its length."""

    node: ControlNode
    carries: Sequence[OnnxValue]
    scanned: Sequence[OnnxValue]
    captured: Sequence[OnnxValue]
    length: Size

    @property
    def carry_types(self) -> Sequence[TensorType]:
        """The types of the carries."""
        return self.node.types[: len(self.carries)]

    @property
    def stacked_types(self) -> Sequence[TensorType]:
        """The types of the stacked results."""
        return self.node.types[len(self.carries) :]

    def step(self, *values: OnnxValue) -> Values:
        """Return the outputs of the body for some carries and a row of each operand."""
        return self.node.run(self.node.symbol.attrs["body"], [*values, *self.captured])


def _scan(node: ControlNode, args: Sequence[OnnxValue]) -> Values:
    """Return the results of a Loop, which unlike Scan may run no turn and may scan nothing."""
    attrs, operands = node.symbol.attrs, node.symbol.args
    start, end = attrs["carries"], attrs["carries"] + attrs["scanned"]
    length = operands[start].shape[0] if attrs["scanned"] else attrs["length"]
    rows = _Rows(node, args[:start], args[start:end], args[end:], length)
    if length == 0:
        return [*rows.carries, *(_empty(node.body, type_) for type_ in rows.stacked_types)]
    return _loop_of(rows)


def _empty(body: OnnxBody, type_: TensorType) -> OnnxValue:
    dtype = onnx_dtype(type_.dtype)
    return body.op("Expand", [body.number(0, dtype), body.shape(type_.shape)], dtype)


def _loop_of(rows: _Rows) -> Values:
    """Return the results of a Loop that takes each row by its place.

    Each row of a stacked result has a first axis of size 1, since the reference evaluator joins the
    rows along their first axis instead of stacking them. The result is reshaped.
    """
    node, body = rows.node, rows.node.body
    start, reverse = len(rows.carries), node.symbol.attrs["reverse"]
    passing = _passing(rows.scanned)
    count = _count(body, rows)
    last = count - 1 if reverse else None

    def step(iteration: OnnxValue, going: OnnxValue, *values: OnnxValue) -> Values:
        place = iteration if last is None else last - iteration
        gathered = [
            body.op("Gather", [whole, place], whole.dtype, axis=0).cast(x.dtype)
            for whole, x in zip(passing, rows.scanned, strict=True)
        ]
        outputs = rows.step(*values, *gathered)
        ys = _passing(outputs[start:])
        axis = body.ints([0])
        slabs = [body.op("Unsqueeze", [y, axis], y.dtype) for y in ys]
        return [going, *outputs[:start], *slabs]

    slabs = [TensorType(y.dtype, (1, *y.shape[1:])) for y in rows.stacked_types]
    graph = node.subgraph(
        "body", [_COUNT, _TRUTH, *rows.carry_types], [_TRUTH, *rows.carry_types, *slabs], step
    )
    operands = [count, body.number(True, DType.bool), *_passing(rows.carries)]
    results = node.results("Loop", operands, node.types, body=graph)
    stacked = [
        with_shape(body, y, type_.shape)
        for y, type_ in zip(results[start:], rows.stacked_types, strict=True)
    ]
    return [*results[:start], *(reversed_along(body, y, [0]) if reverse else y for y in stacked)]


def _count(body: OnnxBody, rows: _Rows) -> OnnxValue:
    """Return the length as a 0-d value."""
    if rows.scanned:
        size = body.op("Shape", [rows.scanned[0]], DType.int64, start=0, end=1)
    else:
        size = body.size(rows.length)
    return body.op("Reshape", [size, body.ints([])], DType.int64)


def _call(node: ControlNode, args: Sequence[OnnxValue]) -> Values:
    """Return the results of a node of ONNX that from_onnx has read."""
    body, function = node.body, node.symbol.attrs["callee"].function
    if not isinstance(function, BoundNode):
        raise lacking("ONNX", node.symbol, "passes no text on", "write it with ops of graphir")
    names = [body.names.new(f"{body.prefix}/call") for _ in node.types]
    domain, version = function.domain
    try:
        message = function.renamed([x.name for x in args], names, OPSET)
    except GraphError as error:
        fix = "convert the model by onnx.version_converter"
        raise lacking("ONNX", node.symbol, f"cannot take the node: {error}", fix) from None
    if domain and body.opsets.setdefault(domain, version) != version:
        raise lacking("ONNX", node.symbol, f"has one version of {domain!r}", "use one version")
    body.helper.set_metadata_props(message, body.metadata)
    body.nodes.append(message)
    body.node_outputs.update(names)
    dtypes = [onnx_dtype(type_.dtype) for type_ in node.types]
    return [OnnxValue(body, *pair) for pair in zip(names, dtypes, strict=True)]


CONTROL: Mapping[str, Callable[[ControlNode, Sequence[OnnxValue]], Values]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "call": _call,
}
"""The function of each op of control flow."""
