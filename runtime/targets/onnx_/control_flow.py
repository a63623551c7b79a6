"""Control flow in ONNX: If and Loop, whose subgraphs use values from outside by their names.

Values of dtypes for which onnxruntime has no subgraphs enter and leave them as wider dtypes.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from graphir.ops.dims import Size
from graphir.public import DType, Graph, GraphError, Symbol, TensorType
from graphir.runtime.sources.onnx_.bound_node import BoundNode
from graphir.runtime.targets.emission import lacking
from graphir.runtime.targets.onnx_.body import OPSET, OnnxBody, onnx_dtype, passing_dtype
from graphir.runtime.targets.onnx_.movement import reversed_along, with_shape
from graphir.runtime.targets.onnx_.values import OnnxValue, compared

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
