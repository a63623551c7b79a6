"""How a node of a model becomes ops: by its row, by its function, as control flow, or as a call."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphir.ops.control import Callee
from graphir.ops.types import OpaqueType, TupleType
from graphir.public import DType, GraphError, Symbol, TensorType, ops
from graphir.runtime.sources.onnx_ import movement_rows, quantization_rows
from graphir.runtime.sources.onnx_.bound_node import BoundNode
from graphir.runtime.sources.onnx_.model import (
    DTYPES,
    domain_of,
    function_key,
    graphs_of,
    require_distinct,
    text_of,
)
from graphir.runtime.sources.onnx_.node_rows import ROWS, NodeCall, axis_of
from graphir.runtime.sources.onnx_.node_types import (
    STRING,
    Declared,
    NodeTypes,
    ResultTypes,
    misfits,
)
from graphir.runtime.sources.onnx_.nodes import exporter_pass, outer_names, result_names
from graphir.runtime.sources.onnx_.wide_nodes import ELEMENT_TYPES, RANDOM
from graphir.runtime.sources.onnx_.wire_format import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    OpSchema,
)
from graphir.runtime.sources.op_rows import Emitted, trial

if TYPE_CHECKING:
    from graphir.runtime.sources.onnx_.source import OnnxImporter


TABLES = movement_rows, quantization_rows
"""The modules that add rows to ROWS."""

Value: TypeAlias = "Symbol | None"


class NodeImporter:
    """Adds a node to the graph of a scope of names. `args` are the values of its inputs."""

    def __init__(self, scope: OnnxImporter, node: NodeProto) -> None:
        self.scope, self.graph, self.model, self.onnx = scope, scope.graph, scope.model, scope.onnx
        self.node, self.domain, self.op = node, domain_of(node), text_of(node.op_type)
        self.args = [scope.value(text_of(name)) for name in node.input]

    def results(self) -> Sequence[Value]:
        """Return the results of the node: by its row, by its function, or as a call."""
        node, functions = self.node, self.model.functions
        function = functions.get(function_key(node)) if functions else None
        if function is not None:
            return self._by_function(function, {})
        schema = self._schema()
        if schema is None:
            return self._foreign()
        self.model.check_node(node, {**self.scope.opsets, self.domain: schema.since_version})
        attrs = self._attributes_of(schema)
        if self.op == "Constant" and not self.domain:
            return [self._constant(attrs)]
        call = NodeCall(self.scope, schema.name, schema.since_version, exporter_pass(node))
        self._convert_misfits(call, schema)
        self._require_fmod(attrs)
        operands = self._operands()
        result_types = self._node_types.infer(schema, node, operands, attrs, self.args)
        call.types = [x if type(x) is TensorType else None for x in result_types.types]
        for way in (self._by_row, self._by_body):
            with trial(self.graph) as attempt:
                results = way(call, schema, attrs)
                if results is not None:
                    pairs = zip(results, result_types.types, strict=False)
                    return attempt.keep(
                        [None if x is None else self._conformed(x, type_) for x, type_ in pairs]
                    )
        if result_types.problem:
            raise GraphError(result_types.problem)
        return self._call(operands, result_types)

    @property
    def _node_types(self) -> NodeTypes:
        scope = self.scope
        return NodeTypes(self.onnx, scope.types, scope.opsets, scope.static, scope.declared)

    def _operands(self) -> dict[str, Value]:
        """Return the operands of the node, and the values that its graphs use, by name."""
        operands = dict(zip(map(text_of, self.node.input), self.args, strict=True))
        outer = outer_names(graphs_of(self.node))
        return operands | {name: self.scope.value(name) for name in outer}

    def _foreign(self) -> Sequence[Value]:
        """Return the results of a node whose op ONNX does not define, such as onnxruntime's own.

        onnxruntime infers the types that no table and no value_info states.
        """
        node, args = self.node, self.args
        attrs = {text_of(each.name): self._python(each) for each in node.attribute}
        operands, node_types = self._operands(), self._node_types
        result_types = node_types.complete(node, attrs, {}, args)
        is_unknown = any(name and result_types.protos[name] is None for name in node.output)
        if is_unknown or self.model.is_defined(self.domain):
            bound = self._bound({name: x for name, x in operands.items() if x is not None})
            try:
                result_protos = bound.result_types()
            except GraphError as error:
                reason, fixes = error.problem, error.fixes
                raise self._no_op().having(reason=reason, fixes=fixes) from None
            result_types = node_types.complete(node, attrs, result_protos, args)
        return self._call(operands, result_types)

    def _no_op(self) -> GraphError:
        """Return the error for an op that neither onnx nor onnxruntime has."""
        domain = self.domain
        return GraphError(
            f"onnx has no op {self.op} in version {self.scope.opsets[domain]} of the "
            f"operator set {domain or 'ai.onnx'!r}, no function of the model has that name, and "
            "onnxruntime does not tell the types of its results"
        )

    def _require_fmod(self, attrs: Mapping[str, Any]) -> None:
        """Raise GraphError for the Mod of floats that ONNX has for integers alone."""
        if self.op != "Mod" or self.domain or attrs["fmod"]:
            return
        dtype = None if self.args[0] is None else self.args[0].dtype
        if dtype is not None and dtype.is_float:
            raise GraphError(
                "Mod of floats needs fmod=1",
                got=f"fmod=0 and {dtype}",
                fix="set fmod=1, by which the result has the sign of the first operand",
            )

    def _convert_misfits(self, call: NodeCall, schema: OpSchema) -> None:
        """Convert the operands to types that the op takes, with a note for each cast."""
        first = text_of(self.node.output[0])
        type_ = self.scope.declared.get(first)
        dtype = None if type_ is None else DTYPES.get(type_.tensor_type.elem_type)
        declared = Declared(dtype, first in self.scope.output_names)
        names = [*map(text_of, self.node.input)]
        for operand, to, note in misfits(self.onnx, schema, names, self.args, declared):
            self.args[operand.place] = call.cast(operand.symbol, to, operand.parameter)
            self.scope.note_cast(first, operand.place, to)
            self.scope.notes.append(f"{self.scope.here}: {note}")

    def _schema(self) -> OpSchema:
        """Return the schema of the op; None where ONNX does not define the op."""
        domain, op = self.domain, self.op
        version = self.scope.opsets.get(domain)
        if version is None:
            raise GraphError(f"the model imports no version of the operator set {domain!r}")
        if not domain and version < _EARLY.get(op, 0):
            version = _EARLY[op]
        try:
            return self.onnx.defs.get_schema(op, version, domain)
        except Exception:  # SchemaError, or TypeError for a name that is not UTF-8
            return None

    def _attributes_of(self, schema: OpSchema) -> dict[str, Any]:
        """Return the attributes of the node, with the defaults of the schema."""
        attrs = {name: self._python(value) for name, value in _defaults(schema).items()}
        for attribute in self.node.attribute:
            name, value = text_of(attribute.name), self._python(attribute)
            if name in ELEMENT_TYPES and isinstance(value, int) and value not in _ELEMENTS:
                what = f"onnx {self.onnx.__version__} has no element type {value}"
                raise GraphError(f"{what}, which the attribute {name} names")
            attrs[name] = value
        return attrs

    def _python(self, attribute: AttributeProto) -> Any:
        value = self.onnx.helper.get_attribute_value(attribute)
        return text_of(value) if isinstance(value, bytes) else value

    def _constant(self, attrs: Mapping[str, Any]) -> Symbol:
        if len(attrs) != 1:
            raise GraphError("a Constant has one value", got=", ".join(attrs) or "none")
        ((name, value),) = attrs.items()
        if name == "value":
            return self.graph.constant_of(self.model.array(value))
        if name in ("value_int", "value_ints"):
            return self.graph.constant_of((DType.int64, np.asarray(value, np.int64)))
        if name in ("value_float", "value_floats"):
            return self.graph.constant_of((DType.float32, np.asarray(value, np.float32)))
        raise GraphError(f"a constant of {name} is no array of numbers")

    def _conformed(self, symbol: Symbol, type_: TensorType | None) -> Symbol:
        """Return a result in the dtype that ONNX has for it; GraphError for another shape."""
        if type_ is None or type(type_) is not TensorType:
            return symbol
        pairs = zip(symbol.shape, type_.shape, strict=True)
        if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
            raise GraphError(f"the row gives another shape than {type_}", got=str(symbol.type))
        return self.graph.cast_for(symbol, type_.dtype, "result", "onnx")

    # -- ways

    def _by_row(
        self, call: NodeCall, schema: OpSchema, attrs: dict[str, Any]
    ) -> Sequence[Value] | None:
        row = ROWS.get(schema.name)
        if row is None:
            return None
        if schema.name not in SUBGRAPHS and any(
            type(x.type) is not TensorType for x in self.args if x is not None
        ):
            return None
        values = {
            name: self.graph.constant_of(self.model.array(value))
            if isinstance(value, self.onnx.TensorProto)
            else value
            for name, value in attrs.items()
        }
        symbols = ROWS.results(row, call, self.args, values)
        count = len(result_names(self.node))
        return symbols if symbols is not None and len(symbols) >= count else None

    def _by_body(
        self, call: NodeCall, schema: OpSchema, attrs: dict[str, Any]
    ) -> Sequence[Value] | None:
        """Return the results of the function body of a schema."""
        version = self.scope.opsets[schema.domain]
        data = None
        if schema.has_function:
            versions = sorted(schema.function_opset_versions)
            last = max((v for v in versions if v <= version), default=versions[0])
            data = schema.get_function_with_opset_version(last)
        elif schema.has_context_dependent_function:
            versions = schema.context_dependent_function_opset_versions
            versions = [v for v in versions if v <= version]
            types_of_args = [
                self.onnx.TypeProto() if x is None else self.scope.types.onnx_type(x)
                for x in self.args
            ]
            type_data = [type_.SerializeToString() for type_ in types_of_args]
            if versions:
                data = schema.get_context_dependent_function_with_opset_version(
                    max(versions), self.node.SerializeToString(), type_data
                )
        if not data:
            return None
        function = self.onnx.FunctionProto.FromString(data)
        return self._by_function(function, _defaults(schema), schema.name)

    def _by_function(
        self, function: FunctionProto, defaults: Mapping[str, Any], op: str = ""
    ) -> Sequence[Value]:
        """Return the results of a function: of the model, or with `op` of the schema of an op."""
        attributes = {
            **defaults,
            **{text_of(each.name): each for each in function.attribute_proto},
            **{text_of(each.name): each for each in self.node.attribute},
        }
        opsets = {"": self.onnx.defs.onnx_opset_version(), **self.scope.opsets}
        opsets |= self.model.versions(function.opset_import)
        scope = self.scope
        inner = scope.inside(self.graph)
        inner.static, inner.opsets, inner.attributes = scope.static, opsets, attributes
        inner.tensors = ChainMap()
        if op:
            inner.outer_op = scope.outer_op or op
            inner.op_location = scope.here
        else:
            self._note_versions(function)
            name = text_of(self.node.name) or self.op
            inner.layer = f"{scope.layer}/{name.strip('/')}".strip("/")
        names = map(text_of, function.input)
        require_distinct([*map(text_of, function.input)], "inputs")
        inner.values.update(dict.fromkeys(map(text_of, function.input)))
        inner.values.update(zip(names, self.args, strict=False))
        inner.add_nodes(function.node)
        pairs = zip(function.output, self.node.output, strict=False)
        return [inner.value(text_of(name)) if result else None for name, result in pairs]

    def _note_versions(self, function: FunctionProto) -> None:
        """Note the ops of a function that are others in the version that the model imports."""
        for domain, version in self.model.versions(function.opset_import).items():
            versions = version, self.model.opsets.get(domain, version)
            names = {text_of(node.op_type) for node in function.node if domain_of(node) == domain}
            changed = sorted(op for op in names if self._differs(op, domain, versions))
            if changed:
                text = f"imports version {versions[0]} of {domain or 'ai.onnx'!r}, the model"
                text = f"function {text_of(function.name)!r} {text} {versions[1]}"
                self.scope.notes.append(
                    f"{text}: runtimes may compute another {', '.join(changed)}"
                )

    def _differs(self, op: str, domain: str, versions: Iterable[int]) -> bool:
        """Whether an op changed between versions of its operator set; False if one lacks it."""
        with suppress(self.onnx.defs.SchemaError):
            schemas = [self.onnx.defs.get_schema(op, version, domain) for version in versions]
            return len({schema.since_version for schema in schemas}) > 1
        return False

    def _call(self, values: Mapping[str, Value], result_types: ResultTypes) -> Sequence[Value]:
        """Return the results of a node as those of a call."""
        operands = {name: symbol for name, symbol in values.items() if symbol is not None}
        if self.op in _RANDOM and not self.domain:
            text = f"{self.op} is random: the values of the graph differ from run to run"
            self.scope.notes.append(f"{self.scope.here}: {text}")
        function = self._bound(operands)
        parts = [
            OpaqueType(f"{self.op}:{i}") if type_ is None else type_
            for i, type_ in enumerate(result_types.types)
            if self.node.output[i]
        ]
        attrs = {"callee": Callee(f"onnx.{self.node.op_type}", function), "types": TupleType(parts)}
        results = iter(self.scope.control(ops.control.call, [*operands.values()], attrs))
        symbols = [next(results) if name else None for name in self.node.output]
        for name, symbol in zip(self.node.output, symbols, strict=True):
            type_ = result_types.protos.get(name)
            if symbol is not None and type(symbol.type) is not TensorType and type_ is not None:
                self.scope.types.opaque[symbol] = type_
        return symbols

    def _bound(self, operands: Mapping[str, Symbol]) -> BoundNode:
        """Return a node as a function of its operands."""
        types = {name: self.scope.types.onnx_type(symbol) for name, symbol in operands.items()}
        constants = {
            name: symbol.attrs["value"]
            for name, symbol in operands.items()
            if symbol.op is ops.constant and symbol.attrs["value"].nbytes <= _MOST_INSIDE
        }
        return BoundNode(self.model, self.node, types, self.scope.opsets, constants)


_EARLY = {"LayerNormalization": 17}
"""The first versions of ops that onnxruntime's optimizer writes in models of earlier versions."""

_RANDOM = frozenset((*RANDOM, "Dropout"))
"""The ops whose calls compute random values."""

_MOST_INSIDE = 1 << 26
"""The most bytes of a constant that the model of a call has inside, for which it is copied."""

_ELEMENTS = {0, STRING, *DTYPES}


def _defaults(schema: OpSchema) -> dict[str, Any]:
    """Return the default values of an op's attributes, messages of ONNX."""
    return {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type
    }


# -- rows of If, Loop and Scan, whose graphs use values from outside by name

_COUNT = TensorType(DType.int64)
LIMIT = "\0limit"
"""The name of the trip count among the values from outside, which no value of a model has."""


def _if(e: NodeCall, test: Symbol, *, else_branch: GraphProto, then_branch: GraphProto) -> Emitted:
    """The branch that runs, where the condition is known; else both."""
    importer, graphs = e.importer, (else_branch, then_branch)
    test = e.shaped(test, ())
    value = e.static.of(test)
    if value is not None:
        return importer.inlined(graphs[int(value)])
    outer = importer.outer_values(graphs)
    branches = tuple(
        importer.body(graph, (), outer, lambda inner, own, graph=graph: inner.run(graph, own))
        for graph in graphs
    )
    return importer.control(ops.control.cond, [test, *outer.values()], {"branches": branches})


def _loop(
    e: NodeCall, trips: Symbol | None, test: Symbol | None, *carried: Symbol, body: GraphProto
) -> Emitted:
    """A scan where the condition stays true; a while loop where no result is stacked."""
    importer = e.importer
    trips = None if trips is None else e.shaped(trips, ())
    stacked = len(body.output) - 1 - len(carried)
    start = e.number(0, importer.constant(0, DType.int64))
    going = importer.constant(True, DType.bool) if test is None else e.shaped(test, ())
    outer = importer.outer_values((body,))
    types = [x.type for x in carried]
    goes_on: list[bool] = []

    def step(inner: OnnxImporter, own: Sequence[Any]) -> list[Any]:
        truth = inner.constant(True, DType.bool)
        count, *values = own
        verdict, *results = inner.run(body, [count, truth, *values])
        value = inner.static.of(verdict)
        goes_on.append(value is not None and bool(value.all()))
        return [_next(inner, count), *results]

    count = None if trips is None else e.static.of(trips)
    first = e.static.of(going)
    if count is not None and first is not None and first.all():
        graph = importer.body(body, [_COUNT, *types], outer, step)
        if goes_on == [True]:
            length = max(count.item(), 0) if count.dtype != object else count.item()
            settings = {"body": graph, "carries": 1 + len(carried), "scanned": 0, "length": length}
            operands = [start, *carried, *outer.values()]
            return importer.control(ops.control.scan, operands, settings)[1:]
    if stacked:
        return None
    limit = {} if trips is None else {LIMIT: trips}
    outer = {**limit, **outer}

    def advance(inner: OnnxImporter, own: Sequence[Any]) -> list[Any]:
        count, verdict, *values = own
        return [_next(inner, count), *inner.run(body, [count, verdict, *values])]

    def is_running(inner: OnnxImporter, own: Sequence[Any]) -> list[Any]:
        count, verdict, *_ = own
        if not limit:
            return [verdict]
        below = inner.graph.emit(ops.less, (count, inner.symbol(LIMIT)), {})
        return [inner.graph.emit(ops.logical_and, (verdict, below), {})]

    inner_types = [_COUNT, TensorType(DType.bool), *types]
    settings = {
        "condition": importer.body(body, inner_types, outer, is_running),
        "body": importer.body(body, inner_types, outer, advance),
    }
    operands = [start, going, *carried, *outer.values()]
    return importer.control(ops.control.while_loop, operands, settings)[2:]


def _next(importer: OnnxImporter, count: Symbol) -> Symbol:
    step = importer.constant(1, DType.int64)
    return importer.graph.emit(ops.add, (count, step), {})


def _scan(
    e: NodeCall,
    *args: Symbol,
    body: GraphProto,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
) -> Emitted:
    if e.version < 9:
        return None
    importer, count = e.importer, num_scan_inputs
    carried, scanned = args[:-count], args[-count:]
    stacked = len(body.output) - len(carried)
    entering = zip(
        scanned,
        scan_input_axes or [0] * count,
        scan_input_directions or [0] * count,
        strict=True,
    )
    rows = [_turned(e, _moved_axis(e, x, axis, 0), reverse) for x, axis, reverse in entering]
    outer = importer.outer_values((body,))
    types = [*(x.type for x in carried), *(TensorType(x.dtype, x.shape[1:]) for x in rows)]
    graph = importer.body(body, types, outer, lambda inner, own: inner.run(body, own))
    settings = {"body": graph, "carries": len(carried), "scanned": count}
    results = importer.control(ops.control.scan, [*carried, *rows, *outer.values()], settings)
    leaving = zip(
        results[len(carried) :],
        scan_output_axes or [0] * stacked,
        scan_output_directions or [0] * stacked,
        strict=True,
    )
    wholes = [_moved_axis(e, _turned(e, y, reverse), 0, axis) for y, axis, reverse in leaving]
    return [*results[: len(carried)], *wholes]


def _turned(e: NodeCall, x: Symbol, reverse: int) -> Symbol:
    return e(ops.flip, x, axis=(0,)) if reverse else x


def _moved_axis(e: NodeCall, x: Symbol, source: int, target: int) -> Symbol:
    source, target = axis_of(source, x.rank), axis_of(target, x.rank)
    order = [axis for axis in range(x.rank) if axis != source]
    order.insert(target, source)
    return x if source == target else e(ops.permute, x, dims=order)


SUBGRAPHS = {"If": _if, "Loop": _loop, "Scan": _scan}
"""The rows of the ops with graphs among their attributes."""

ROWS.update(SUBGRAPHS)
