"""`from_onnx`: the graph of an ONNX model.

Each node becomes the ops of its row, the nodes of its function, or a call. ONNX has no promotion:
the rules are "explicit", and every value has the dtype that ONNX infers for it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from graphir import DType, Graph, GraphError, Location, Op, Symbol, TensorType, ops
from graphir.gc_pause import uncollected
from graphir.ops.control import Callee
from graphir.ops.types import OpaqueType, TupleType
from graphir.passes import dead_code
from graphir.runtime.sources.onnx_ import movement_rows, quantization_rows
from graphir.runtime.sources.onnx_.bound_node import BoundNode
from graphir.runtime.sources.onnx_.model import (
    DTYPES,
    OnnxModel,
    domain_of,
    function_key,
    graphs_of,
    read_model,
    require_distinct,
    require_size,
    text_of,
)
from graphir.runtime.sources.onnx_.model_interface import add_inputs, output_symbol
from graphir.runtime.sources.onnx_.node_rows import ROWS, NodeCall
from graphir.runtime.sources.onnx_.node_types import (
    STRING,
    Declared,
    ModelTypes,
    NodeTypes,
    ResultTypes,
    misfits,
    type_name,
)
from graphir.runtime.sources.onnx_.nodes import (
    exporter_pass,
    in_order,
    location_of,
    outer_names,
    result_names,
)
from graphir.runtime.sources.onnx_.static_values import StaticValues
from graphir.runtime.sources.onnx_.subgraphs import SUBGRAPHS
from graphir.runtime.sources.onnx_.wide_nodes import ELEMENT_TYPES, RANDOM
from graphir.runtime.sources.onnx_.wire_format import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    OpSchema,
)
from graphir.runtime.sources.rows import identifier, trial

TABLES = movement_rows, quantization_rows
"""The modules that add rows to ROWS."""


@uncollected
def from_onnx(model: Any, /, **sizes: Any) -> Graph:
    """Return the graph of an ONNX model: a path, the bytes of a file, or an onnx.ModelProto.

    Inputs have the names of the model's inputs. Initializers are constants. The keywords are sizes
    of symbolic dims, shapes of inputs, and arrays: the values of inputs that become constants, such
    as axes. Text comes and goes as the numbers of its characters: `x[..., None].view(np.uint32)` of
    a NumPy array of str. The rules are "explicit". A node that no op stands for becomes the op
    `call`. Raises GraphError for a model that is not valid, with the node.
    """
    onnx_model = read_model(model)
    proto = onnx_model.proto.graph
    with onnx_model.place():
        graph = Graph(identifier(text_of(proto.name) or "model"), rules="explicit")
        graph.describe(library="onnx", file=onnx_model.file)
        onnx_model.require_bounded()
        importer = OnnxImporter(graph, onnx_model, onnx_model.opsets)
        add_inputs(importer, proto, sizes)
        importer.add_nodes(proto.node)
        graph.output(*[output_symbol(importer, info) for info in proto.output])
    graph = dead_code(graph)
    graph.describe(notes=[*dict.fromkeys(importer.notes)])  # a body may be imported twice
    return graph


Value: TypeAlias = "Symbol | None"


class OnnxImporter:
    """Adds the nodes of a model's graph, subgraph or function to a graph.

    `outer_op` is the op whose function has the nodes, or "". `output_names` are those of the model.
    """

    def __init__(
        self,
        graph: Graph,
        model: OnnxModel,
        opsets: Mapping[str, int],
        location: Location | None = None,
    ) -> None:
        self.graph, self.model, self.onnx, self.opsets = graph, model, model.onnx, opsets
        self.static = StaticValues(graph)
        self.values: ChainMap[str, Value] = ChainMap()
        self.tensors: ChainMap[str, Any] = ChainMap()
        self.types = ModelTypes(model.onnx)
        self.declared: dict[str, Any] = {}  # the types that the model states, by name
        self.notes: list[str] = []
        self.output_names: set[str] = set()
        self.outer_op = ""
        self._location: Location | None = None  # of all nodes, if they are those of an op
        self._here = location or Location.at("", 1)  # of the node that is imported
        self._attributes: Mapping[str, Any] = {}
        self._layer = ""

    # -- values

    def add_tensors(self, proto: GraphProto) -> None:
        """Add the initializers of a graph, which are constants from their first use on."""
        tensors = {text_of(each.name): each for each in proto.initializer}
        sparse = {text_of(each.values.name): each for each in proto.sparse_initializer}
        names = [text_of(each.name) for each in proto.initializer]
        require_distinct(
            [*names, *(text_of(x.values.name) for x in proto.sparse_initializer)], "initializers"
        )
        self.tensors.update({**tensors, **sparse})

    def require_declared(self, name: str, symbol: Symbol, maker: str) -> None:
        """Raise GraphError for a value of another dtype than the model declares; note a shape.

        `maker` is what has the dtype, such as "node".
        """
        declared = self.declared.get(name)
        dtype = None if declared is None else DTYPES.get(declared.tensor_type.elem_type)
        if declared is None or dtype is None or type(symbol.type) is not TensorType:
            return
        if dtype is not symbol.dtype:
            own, to = (type_name(self.onnx, each) for each in (symbol.dtype, dtype))
            raise GraphError(
                f"{name!r} is declared {to}, and its {maker} gives {own}",
                fix=f"declare it {own}, or insert Cast(to={to}) before it",
            )
        if not declared.tensor_type.HasField("shape"):
            return
        dims = declared.tensor_type.shape.dim
        pairs = zip(symbol.shape, [dim.dim_value for dim in dims], strict=False)
        if len(dims) != symbol.rank or any(
            isinstance(a, int) and b > 0 and a != b for a, b in pairs
        ):
            shape = [dim.dim_value or text_of(dim.dim_param) or "?" for dim in dims]
            text = (
                f"{name!r} is declared {type_name(self.onnx, dtype)}[{', '.join(map(str, shape))}]"
            )
            self.notes.append(f"{self._here}: {text}, and its {maker} gives {symbol.type}")

    def declare(self, proto: GraphProto) -> None:
        """Take in the types that a graph of the model states."""
        self.declared = {text_of(x.name): x.type for x in (*proto.value_info, *proto.output)}

    def symbol(self, name: str) -> Symbol:
        """Return the symbol of a name; GraphError if it is absent."""
        symbol = self.value(name)
        if symbol is None:
            raise GraphError(f"the value {name!r} is absent")
        return symbol

    def value(self, name: str) -> Value:
        """Return the symbol of a name, None for no name; GraphError if no node makes it."""
        if not name:
            return None
        if name not in self.values:
            if name not in self.tensors:
                raise GraphError(f"no node, input or initializer is named {name!r}")
            tensor = self.tensors[name]
            read = self.model.dense if hasattr(tensor, "indices") else self.model.array
            with self.graph.at(Location.at(name, 0)):
                constant = self.graph.constant_of(read(tensor))
            place = next(i for i, scope in enumerate(self.tensors.maps) if name in scope)
            self.values.maps[min(place, len(self.values.maps) - 1)][name] = constant
        return self.values[name]

    def constant(self, value: Any, dtype: DType) -> Symbol:
        """Return a 0-d constant."""
        return self.graph.constant_of((dtype, np.asarray(value, dtype.storage)))

    # -- subgraphs

    def _inside(self, graph: Graph) -> OnnxImporter:
        """Return an importer of nodes that belong to the node that is imported here."""
        inner = OnnxImporter(graph, self.model, self.opsets, self._here)
        inner._location, inner._attributes = self._location, self._attributes
        inner.notes, inner.types = self.notes, self.types
        inner._layer, inner.outer_op = self._layer, self.outer_op
        inner.tensors = self.tensors.new_child()
        return inner

    def run(self, proto: GraphProto, own: Sequence[Symbol]) -> list[Symbol]:
        """Add the nodes of a graph for values of its inputs, and return its outputs."""
        self.add_tensors(proto)
        self.declare(proto)
        names = [text_of(info.name) for info in proto.input]
        require_distinct(names, "inputs")
        self.values.update(zip(names, own, strict=True))
        self.declared |= {text_of(x.name): x.type for x in proto.input}
        for name, symbol in zip(names, own, strict=True):
            self.require_declared(name, symbol, "operand")
        self.add_nodes(proto.node)
        return [self.symbol(text_of(info.name)) for info in proto.output]

    def inlined(self, proto: GraphProto) -> list[Symbol]:
        """Add the nodes of a subgraph without inputs to this graph, and return its outputs."""
        inner = self._inside(self.graph)
        inner.static, inner.values = self.static, self.values.new_child()
        return inner.run(proto, ())

    def outer_values(self, protos: Sequence[Any]) -> dict[str, Symbol]:
        """Return the values from outside that subgraphs use, by name; initializers are none."""
        values: dict[str, Symbol] = {}
        for name in outer_names(protos):
            symbol = self.values.get(name)
            if symbol is not None:
                values[name] = symbol
        return values

    def body(
        self,
        proto: GraphProto,
        types: Sequence[TensorType],
        outer: Mapping[str, Symbol],
        run: Callable[[OnnxImporter, Sequence[Symbol]], Sequence[Symbol]],
    ) -> Graph:
        """Return the graph of a subgraph, with inputs of some types and for values from outside.

        `run(importer, inputs)` adds the nodes, and returns the outputs.
        """
        graph = Graph(identifier(text_of(proto.name) or "body"), rules="explicit")
        inner = self._inside(graph)
        with graph.at(self._here):
            own = [graph.input(type_) for type_ in types]
            for name, symbol in outer.items():
                inner.values[name] = argument = graph.input(symbol.type)
                inner.static.assume(argument, self.static.of(symbol))
            graph.output(*run(inner, own))
        return graph

    def control(self, op: Op, args: Sequence[Symbol], attrs: Mapping[str, Any]) -> Sequence[Symbol]:
        """Add an op that gives a tuple, and return its results."""
        return ops.control.parts(self.graph.emit(op, tuple(args), attrs))

    # -- nodes

    def add_nodes(self, nodes: Sequence[Any]) -> None:
        """Add the nodes of a graph, each after those whose results it uses."""

        def is_known(name: str) -> bool:
            return name in self.values or name in self.tensors

        for place, node in in_order(nodes, is_known):
            self._here = self._location or location_of(node, place, self._layer)
            with self.graph.at(self._here), self.model.place((node, place)):
                results = self._results(self._resolved(node))
                names = map(text_of, node.output)
                for name, result in zip(names, results, strict=False):
                    if name:
                        self._name(name, result)

    def _name(self, name: str, value: Value) -> None:
        """Give a value its name; GraphError for a name of another value of the graph."""
        if name in self.values.maps[0] or name in self.tensors.maps[0]:
            raise GraphError(f"two values have the name {name!r}")
        if value is not None and type(value.type) is TensorType:
            require_size(value.shape)
            self.require_declared(name, value, "node")
        self.values[name] = value

    def _resolved(self, node: NodeProto) -> Any:
        """Return a node of a function with the attributes of the function's call."""
        if not any(attribute.ref_attr_name for attribute in node.attribute):
            return node
        new = self.onnx.NodeProto()
        new.CopyFrom(node)
        del new.attribute[:]
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                new.attribute.append(attribute)
            elif text_of(attribute.ref_attr_name) in self._attributes:
                actual = self.onnx.AttributeProto()
                actual.CopyFrom(self._attributes[attribute.ref_attr_name])
                actual.name = text_of(attribute.name)
                new.attribute.append(actual)
        return new

    def _results(self, node: NodeProto) -> Sequence[Value]:
        """Return the results of a node: by its row, by its function, or as a call."""
        domain, op = domain_of(node), text_of(node.op_type)
        functions = self.model.functions
        function = functions.get(function_key(node)) if functions else None
        args = [self.value(text_of(name)) for name in node.input]
        if function is not None:
            return self._by_function(function, node, args, {})
        schema = self._schema(domain, op)
        if schema is None:
            return self._foreign(node, args)
        self.model.check_node(node, {**self.opsets, domain: schema.since_version})
        attrs = self._attributes_of(node, schema)
        if op == "Constant" and not domain:
            return [self._constant(attrs)]
        call = NodeCall(self, schema.name, schema.since_version, exporter_pass(node))
        args = self._agreeing(call, schema, node, args)
        operands = self._operands(node, args)
        result_types = self._node_types.infer(schema, node, operands, attrs, args)
        call.types = [x if type(x) is TensorType else None for x in result_types.types]
        for way in (self._by_row, self._by_body):
            with trial(self.graph) as attempt:
                results = way(call, node, schema, args, attrs)
                if results is not None:
                    pairs = zip(results, result_types.types, strict=False)
                    return attempt.keep(
                        [None if x is None else self._conformed(x, type_) for x, type_ in pairs]
                    )
        if result_types.problem:
            raise GraphError(result_types.problem)
        return self._call(node, operands, result_types)

    @property
    def _node_types(self) -> NodeTypes:
        return NodeTypes(self.onnx, self.types, self.opsets, self.static, self.declared)

    def _operands(self, node: NodeProto, args: Sequence[Value]) -> dict[str, Value]:
        """Return the operands of a node, and the values that its graphs use, by name."""
        operands = dict(zip(map(text_of, node.input), args, strict=True))
        return operands | {name: self.value(name) for name in outer_names(graphs_of(node))}

    def _foreign(self, node: NodeProto, args: Sequence[Value]) -> Sequence[Value]:
        """Return the results of a node whose op ONNX does not define, such as onnxruntime's own.

        onnxruntime infers the types that no table and no value_info states.
        """
        attrs = {text_of(each.name): self._python(each) for each in node.attribute}
        operands, node_types = self._operands(node, args), self._node_types
        result_types = node_types.complete(node, attrs, {}, args)
        is_unknown = any(name and result_types.protos[name] is None for name in node.output)
        if is_unknown or self.model.is_defined(domain_of(node)):
            bound = self._bound(node, {name: x for name, x in operands.items() if x is not None})
            try:
                result_protos = bound.result_types()
            except GraphError as error:
                reason, fixes = error.problem, error.fixes
                raise self._no_op(node).having(reason=reason, fixes=fixes) from None
            result_types = node_types.complete(node, attrs, result_protos, args)
        return self._call(node, operands, result_types)

    def _no_op(self, node: NodeProto) -> GraphError:
        """Return the error for an op that neither onnx nor onnxruntime has."""
        domain = domain_of(node)
        return GraphError(
            f"onnx has no op {text_of(node.op_type)} in version {self.opsets[domain]} of the "
            f"operator set {domain or 'ai.onnx'!r}, no function of the model has that name, and "
            "onnxruntime does not tell the types of its results"
        )

    def _agreeing(
        self, call: NodeCall, schema: OpSchema, node: NodeProto, args: Sequence[Value]
    ) -> list[Value]:
        """Return the operands of a node in types that its op takes, with a note for each cast."""
        first = text_of(node.output[0])
        type_ = self.declared.get(first)
        dtype = None if type_ is None else DTYPES.get(type_.tensor_type.elem_type)
        declared = Declared(dtype, first in self.output_names)
        results = [*args]
        names = [*map(text_of, node.input)]
        for operand, to, note in misfits(self.onnx, schema, names, args, declared):
            results[operand.place] = call.cast(operand.symbol, to, operand.parameter)
            self.notes.append(f"{self._here}: {note}")
        return results

    def _schema(self, domain: str, op: str) -> Any:
        """Return the schema of an op; None where ONNX does not define the op."""
        version = self.opsets.get(domain)
        if version is None:
            raise GraphError(f"the model imports no version of the operator set {domain!r}")
        if not domain and version < _EARLY.get(op, 0):
            version = _EARLY[op]
        try:
            return self.onnx.defs.get_schema(op, version, domain)
        except Exception:  # SchemaError, or TypeError for a name that is not UTF-8
            return None

    def _attributes_of(self, node: NodeProto, schema: OpSchema) -> dict[str, Any]:
        """Return the attributes of a node, with the defaults of the schema."""
        attrs = {name: self._python(value) for name, value in _defaults(schema).items()}
        for attribute in node.attribute:
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
        self,
        call: NodeCall,
        node: NodeProto,
        schema: OpSchema,
        args: Sequence[Value],
        attrs: dict[str, Any],
    ) -> Sequence[Value] | None:
        row = ROWS.get(schema.name)
        if row is None:
            return None
        if schema.name not in SUBGRAPHS and any(
            type(x.type) is not TensorType for x in args if x is not None
        ):
            return None
        values = {
            name: self.graph.constant_of(self.model.array(value))
            if isinstance(value, self.onnx.TensorProto)
            else value
            for name, value in attrs.items()
        }
        symbols = ROWS.results(row, call, args, values)
        count = len(result_names(node))
        return symbols if symbols is not None and len(symbols) >= count else None

    def _by_body(
        self,
        call: NodeCall,
        node: NodeProto,
        schema: OpSchema,
        args: Sequence[Value],
        attrs: dict[str, Any],
    ) -> Sequence[Value] | None:
        """Return the results of the function body of a schema."""
        version = self.opsets[schema.domain]
        data = None
        if schema.has_function:
            versions = sorted(schema.function_opset_versions)
            last = max((v for v in versions if v <= version), default=versions[0])
            data = schema.get_function_with_opset_version(last)
        elif schema.has_context_dependent_function:
            versions = schema.context_dependent_function_opset_versions
            versions = [v for v in versions if v <= version]
            types_of_args = [
                self.onnx.TypeProto() if x is None else self.types.onnx_type(x) for x in args
            ]
            type_data = [type_.SerializeToString() for type_ in types_of_args]
            if versions:
                data = schema.get_context_dependent_function_with_opset_version(
                    max(versions), node.SerializeToString(), type_data
                )
        if not data:
            return None
        function = self.onnx.FunctionProto.FromString(data)
        return self._by_function(function, node, args, _defaults(schema), schema.name)

    def _by_function(
        self,
        function: FunctionProto,
        node: NodeProto,
        args: Sequence[Value],
        defaults: Mapping[str, Any],
        op: str = "",
    ) -> Sequence[Value]:
        """Return the results of a function: of the model, or with `op` of the schema of an op."""
        attributes = {
            **defaults,
            **{text_of(each.name): each for each in function.attribute_proto},
            **{text_of(each.name): each for each in node.attribute},
        }
        opsets = {"": self.onnx.defs.onnx_opset_version(), **self.opsets}
        opsets |= self.model.versions(function.opset_import)
        inner = self._inside(self.graph)
        inner.static, inner.opsets, inner._attributes = self.static, opsets, attributes
        inner.tensors = ChainMap()
        if op:
            inner.outer_op = self.outer_op or op
            inner._location = self._here
        else:
            self._note_versions(function)
            name = text_of(node.name) or text_of(node.op_type)
            inner._layer = f"{self._layer}/{name.strip('/')}".strip("/")
        names = map(text_of, function.input)
        require_distinct([*map(text_of, function.input)], "inputs")
        inner.values.update(dict.fromkeys(map(text_of, function.input)))
        inner.values.update(zip(names, args, strict=False))
        inner.add_nodes(function.node)
        pairs = zip(function.output, node.output, strict=False)
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
                self.notes.append(f"{text}: runtimes may compute another {', '.join(changed)}")

    def _differs(self, op: str, domain: str, versions: Iterable[int]) -> bool:
        """Whether an op changed between versions of its operator set; False if one lacks it."""
        with suppress(self.onnx.defs.SchemaError):
            schemas = [self.onnx.defs.get_schema(op, version, domain) for version in versions]
            return len({schema.since_version for schema in schemas}) > 1
        return False

    def _call(
        self, node: NodeProto, values: Mapping[str, Value], result_types: ResultTypes
    ) -> Sequence[Value]:
        """Return the results of a node as those of a call."""
        operands = {name: symbol for name, symbol in values.items() if symbol is not None}
        if text_of(node.op_type) in _RANDOM and not domain_of(node):
            text = f"{self._here}: {text_of(node.op_type)} is random: the values of the graph"
            self.notes.append(f"{text} differ from run to run")
        function = self._bound(node, operands)
        parts = [
            OpaqueType(f"{text_of(node.op_type)}:{i}") if type_ is None else type_
            for i, type_ in enumerate(result_types.types)
            if node.output[i]
        ]
        attrs = {"callee": Callee(f"onnx.{node.op_type}", function), "types": TupleType(parts)}
        results = iter(self.control(ops.control.call, [*operands.values()], attrs))
        symbols = [next(results) if name else None for name in node.output]
        for name, symbol in zip(node.output, symbols, strict=True):
            type_ = result_types.protos.get(name)
            if symbol is not None and type(symbol.type) is not TensorType and type_ is not None:
                self.types.opaque[symbol] = type_
        return symbols

    def _bound(self, node: NodeProto, operands: Mapping[str, Symbol]) -> BoundNode:
        """Return a node as a function of its operands."""
        types = {name: self.types.onnx_type(symbol) for name, symbol in operands.items()}
        constants = {
            name: symbol.attrs["value"]
            for name, symbol in operands.items()
            if symbol.op is ops.constant and symbol.attrs["value"].nbytes <= _MOST_INSIDE
        }
        return BoundNode(self.model, node, types, self.opsets, constants)


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
