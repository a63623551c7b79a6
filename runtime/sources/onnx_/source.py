"""`from_onnx`: the graph of an ONNX model.

Each node becomes the ops of its row, the nodes of its function, or a call. ONNX has no promotion:
the rules are "explicit", and every value has the dtype that ONNX infers for it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np

from graphir import (
    DType,
    Graph,
    GraphError,
    GraphirError,
    Location,
    Op,
    Origin,
    Symbol,
    TensorType,
    ops,
)
from graphir.decorators import uncollected
from graphir.ops.control import Callee
from graphir.ops.dims import Dim, Size
from graphir.ops.types import OpaqueType, TupleType
from graphir.passes import dead_code
from graphir.runtime.sources.names import identifier
from graphir.runtime.sources.onnx_ import ml, movement, quantization
from graphir.runtime.sources.onnx_.calls import (
    BoundNode,
    in_order,
    outer_names,
    points_of_text,
    result_names,
    text_of_points,
)
from graphir.runtime.sources.onnx_.control import CONTROL
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
from graphir.runtime.sources.onnx_.operands import Declared, misfits, type_name
from graphir.runtime.sources.onnx_.places import exporter_pass, location_of
from graphir.runtime.sources.onnx_.result_types import ResultType, rank_of, result_types, sizes_of
from graphir.runtime.sources.onnx_.rows import ROWS, NodeCall
from graphir.runtime.sources.onnx_.static import StaticValues
from graphir.runtime.sources.onnx_.wide_nodes import ELEMENT_TYPES, RANDOM

TABLES = ml, movement, quantization
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
        graph.library, graph.file = "onnx", onnx_model.file
        onnx_model.require_bounded()
        importer = OnnxImporter(graph, onnx_model, onnx_model.opsets)
        importer.declare(proto, sizes)
        importer.add_nodes(proto.node)
        graph.output(*[importer.output(info) for info in proto.output])
    graph = dead_code(graph)
    graph.notes = [*dict.fromkeys(importer.notes)]  # a body may be imported twice
    return graph


Value: TypeAlias = "Symbol | None"


class OnnxImporter:
    """Adds the nodes of a model's graph, subgraph or function to a graph."""

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
        self.types: dict[Symbol, Any] = {}  # the ONNX types of opaque values
        self._type_protos: dict[TensorType, Any] = {}  # which nothing changes
        self.declared: dict[str, Any] = {}  # the types that the model states, by name
        self.notes: list[str] = []
        self._location: Location | None = None  # of all nodes, if they are those of an op
        self._here = location or Location.at("", 1)  # of the node that is imported
        self._attributes: Mapping[str, Any] = {}
        self._dims: set[str] = set()
        self._sizes: Mapping[str, Any] = {}  # that the caller states
        self._layer = self._op = ""  # of the function whose nodes these are
        self._outputs: set[str] = set()

    # -- inputs and outputs

    def declare(self, proto: Any, sizes: Mapping[str, Any]) -> None:
        """Add the inputs of the model's graph, and its initializers."""
        self.add_tensors(proto)
        self.declared = {text_of(x.name): x.type for x in (*proto.value_info, *proto.output)}
        self._outputs = {text_of(x.name) for x in proto.output}
        require_distinct([text_of(info.name) for info in proto.input], "inputs")
        sizes = self._sizes = self._stated_sizes(proto, sizes)
        for info in proto.input:
            name = text_of(info.name)
            if name not in self.tensors:
                is_text = info.type.tensor_type.elem_type == STRING
                full_type = self._points_type(info.type) if is_text else info.type
                type_ = self._input_type(full_type, name, sizes)
                if hasattr(sizes.get(name), "dtype") and not isinstance(sizes[name], TensorType):
                    self.values[name] = self._input_value(name, type_, sizes[name])
                    continue
                text = identifier(name)
                while text in self.graph.input_names:
                    text += "_"
                with self.graph.at(Location.at(name, 0)):
                    symbol = self.graph.input(type_, name=text)
                    self.values[name] = self._text(symbol, info.type) if is_text else symbol

    def add_tensors(self, proto: Any) -> None:
        """Add the initializers of a graph, which are constants from their first use on."""
        tensors = {text_of(each.name): each for each in proto.initializer}
        sparse = {text_of(each.values.name): each for each in proto.sparse_initializer}
        names = [text_of(each.name) for each in proto.initializer]
        require_distinct(
            [*names, *(text_of(x.values.name) for x in proto.sparse_initializer)], "initializers"
        )
        self.tensors.update({**tensors, **sparse})

    def _stated_sizes(self, proto: Any, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the caller states, by the model's names, with the sizes in stated shapes.

        Raises GraphError for a name that the model does not have, and for a shape or a dtype that
        contradicts the model's.
        """
        infos = {text_of(info.name): info.type for info in proto.input}
        names = {identifier(name): name for name in infos} | {name: name for name in infos}
        sizes = {names.get(name, name): value for name, value in stated.items()}
        dims = [dim for type_ in infos.values() for dim in type_.tensor_type.shape.dim]
        texts = {_param_of(dim) for dim in dims} - {""}
        for text in texts & sizes.keys():  # of a model that names a size `batch size`
            sizes.setdefault(str(_dim_of(text)), sizes[text])
        symbols = {name for text in texts for name in _dim_names(text)} | texts
        symbols |= {str(_dim_of(text)) for text in texts}
        if strange := sorted(sizes.keys() - infos.keys() - symbols):
            has = ", ".join([*sorted(symbols), *infos])
            raise GraphError(f"the model has no size or input {strange[0]!r}; it has {has}")
        for name, value in [*sizes.items()]:
            shape = getattr(value, "shape", value)
            if name not in infos or not isinstance(shape, (tuple, list)):
                continue
            tensor = infos[name].tensor_type
            dtype, dims = DTYPES.get(tensor.elem_type), tensor.shape.dim
            fits = not isinstance(value, TensorType) or value.dtype is dtype
            fits &= len(shape) == len(dims) or not tensor.HasField("shape")
            for dim, size in zip(dims, shape, strict=False):
                text = _param_of(dim)
                if text in symbols and isinstance(size, int):
                    fits &= sizes.setdefault(text, size) == size
                elif not text and (dim.dim_value > 0 or dim.HasField("dim_value")):
                    fits &= size == dim.dim_value or dim.dim_value < 0
            if not fits:
                whole = ", ".join(text_of(x.dim_param) or str(x.dim_value or "?") for x in dims)
                raise GraphError(f"input {name!r} is {dtype}[{whole}]", got=str(value))
        return sizes

    def _input_type(self, type_: Any, name: str, sizes: Mapping[str, Any]) -> TensorType:
        tensor = type_.tensor_type
        dtype = DTYPES.get(tensor.elem_type)
        if not type_.HasField("tensor_type") or dtype is None:
            raise GraphError(
                f"input {name!r} is no array of numbers", got=self.type_text(type_), op="input"
            )
        shape = getattr(sizes.get(name), "shape", sizes.get(name))
        if not isinstance(shape, (tuple, list)):
            if not tensor.HasField("shape"):
                text = identifier(name)
                raise GraphError(
                    f"input {name!r} has no rank",
                    fix=f"pass its shape: from_onnx(model, {text}=(2, 3)), "
                    f'in the shell --input "{text}={dtype}[2, 3]"',
                )
            dims = enumerate(tensor.shape.dim)
            shape = [self._size(dim, f"{name}_{axis}") for axis, dim in dims]
        require_size(shape)
        return TensorType(dtype, tuple(cast("Any", shape)))

    def _input_value(self, name: str, type_: TensorType, value: Any) -> Symbol:
        """Return the constant of the value that the caller states for an input."""
        array = np.asarray(value)
        fits = [
            a == b or isinstance(b, Dim) for a, b in zip(array.shape, type_.shape, strict=False)
        ]
        if array.dtype != type_.dtype.storage or array.ndim != type_.rank or not all(fits):
            got = f"{array.dtype}{list(array.shape)}"
            raise GraphError(f"input {name!r} is {type_}", got=got)
        return self.graph.constant_of((type_.dtype, array))

    def _size(self, dim: Any, name: str) -> Size:
        """Return a dim; one that has neither size nor name, or the size -1, gets a name."""
        if dim.dim_value > 0 or (dim.HasField("dim_value") and not dim.dim_value):
            return dim.dim_value
        text, sizes = _param_of(dim), self._sizes
        if not text:
            text = identifier(name)
            while text in self._dims:
                text += "_"
        if isinstance(sizes.get(text), int):
            return sizes[text]
        size = _dim_of(text)
        self._dims.add(str(size))
        if isinstance(size, Dim) and {*size.names()} <= sizes.keys():
            return size.evaluate(cast("Any", sizes))
        return size

    def output(self, info: Any) -> Symbol:
        """Return the symbol of an output of the model; GraphError where it is no array."""
        name = text_of(info.name)
        symbol = self.symbol(name)
        if type(symbol.type) is TensorType:
            if info.type.HasField("sequence_type") or info.type.HasField("map_type"):
                self.notes.append(f"output {name!r} is the array of the values, without their keys")
            if symbol.op is ops.input or name in self.tensors:
                self._require_declared(name, symbol, "input or initializer")
            return symbol
        type_ = self.types.get(symbol, info.type)
        type_ = type_ if type_.tensor_type.HasField("shape") else info.type
        if not type_.tensor_type.HasField("shape") and type_.HasField("tensor_type"):
            raise GraphError(f"output {name!r} has no known rank", fix="declare its shape")
        if type_.tensor_type.elem_type != STRING:
            raise GraphError(f"output {name!r} is no array", got=self.type_text(type_))
        types = [self.graphir_type(self._points_type(type_), name)]
        return self._text_step("onnx.characters", points_of_text, symbol, types)

    def _require_declared(self, name: str, symbol: Symbol, maker: str) -> None:
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

    def _points_type(self, type_: Any) -> Any:
        """Return the type of text as the numbers of its characters, on an axis more."""
        new = self.onnx.TypeProto.FromString(type_.SerializeToString())
        new.tensor_type.elem_type = NUMBERS[DType.uint32]
        new.tensor_type.shape.dim.add()
        return new

    def _text(self, symbol: Symbol, type_: Any) -> Symbol:
        """Return text of the numbers of its characters."""
        types = [OpaqueType(self.type_text(type_))]
        result = self._text_step("onnx.text", text_of_points, symbol, types)
        self.types[result] = type_
        return result

    def _text_step(
        self, name: str, function: Callable[..., Any], operand: Symbol, types: Sequence[Any]
    ) -> Symbol:
        attrs = {"callee": Callee(name, function), "types": TupleType(types)}
        return self.control(ops.control.call, (operand,), attrs)[0]

    def symbol(self, name: str) -> Symbol:
        """Return the symbol of a name; GraphError if it is absent."""
        symbol = self.value(name)
        if symbol is None:
            raise GraphError(f"the value {name!r} is absent")
        return symbol

    # -- values

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

    def type_text(self, type_: Any) -> str:
        """Format an ONNX type."""
        return " ".join(str(type_).split())

    def graphir_type(self, type_: Any, name: str) -> TensorType:
        """Return the type of a value; opaque unless it is an array of numbers of a known rank."""
        tensor = type_.tensor_type
        dtype = DTYPES.get(tensor.elem_type)
        if not type_.HasField("tensor_type") or dtype is None or not tensor.HasField("shape"):
            return OpaqueType(self.type_text(type_))
        dims = enumerate(tensor.shape.dim)
        return TensorType(dtype, tuple(self._size(dim, f"{name}_{axis}") for axis, dim in dims))

    def onnx_type(self, symbol: Symbol) -> Any:
        """Return the ONNX type of a symbol."""
        if symbol in self.types:
            return self.types[symbol]
        if type(symbol.type) is not TensorType:
            fix = "state it in the model's value_info"
            raise GraphError("the type of an operand is unknown", got=str(symbol.type), fix=fix)
        proto = self._type_protos.get(symbol.type)
        if proto is None:
            shape = [size if isinstance(size, int) else str(size) for size in symbol.shape]
            proto = self.onnx.helper.make_tensor_type_proto(NUMBERS[symbol.dtype], shape)
            self._type_protos[symbol.type] = proto
        return proto

    def constant(self, value: Any, dtype: DType) -> Symbol:
        """Return a 0-d constant."""
        return self.graph.constant_of((dtype, np.asarray(value, dtype.storage)))

    # -- subgraphs

    def _inside(self, graph: Graph) -> OnnxImporter:
        """Return an importer of nodes that belong to the node that is imported here."""
        inner = OnnxImporter(graph, self.model, self.opsets, self._here)
        inner._location, inner._attributes = self._location, self._attributes
        inner.notes, inner.types, inner._dims = self.notes, self.types, self._dims
        inner._type_protos = self._type_protos
        inner._sizes = self._sizes
        inner._layer, inner._op = self._layer, self._op
        inner.tensors = self.tensors.new_child()
        return inner

    def run(self, proto: Any, own: Sequence[Symbol]) -> list[Symbol]:
        """Add the nodes of a graph for values of its inputs, and return its outputs."""
        self.add_tensors(proto)
        self.declared = {text_of(x.name): x.type for x in (*proto.value_info, *proto.output)}
        names = [text_of(info.name) for info in proto.input]
        require_distinct(names, "inputs")
        self.values.update(zip(names, own, strict=True))
        self.declared |= {text_of(x.name): x.type for x in proto.input}
        for name, symbol in zip(names, own, strict=True):
            self._require_declared(name, symbol, "operand")
        self.add_nodes(proto.node)
        return [self.symbol(text_of(info.name)) for info in proto.output]

    def inlined(self, proto: Any) -> list[Symbol]:
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
        proto: Any,
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

        with self.model.nested(nodes):
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
            self._require_declared(name, value, "node")
        self.values[name] = value

    def _resolved(self, node: Any) -> Any:
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

    def _results(self, node: Any) -> Sequence[Value]:
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
        call = NodeCall(self.graph, self.static, schema.name, schema.since_version)
        call.outer, call.by_pass = self._op, exporter_pass(node)
        args = self._agreeing(call, schema, node, args)
        operands = dict(zip(map(text_of, node.input), args, strict=True))
        operands |= {name: self.value(name) for name in outer_names(graphs_of(node))}
        types, problem = self._inference(schema, node, operands, attrs, args)
        call.types = [type_ if type(type_) is TensorType else None for type_ in types]
        before = len(self.graph.symbols)
        for way in (self._by_row, self._by_body):
            try:
                results = way(call, node, schema, args, attrs)
                if results is not None:
                    pairs = zip(results, types, strict=False)
                    return [None if x is None else self._conformed(x, type_) for x, type_ in pairs]
            except _ROW_ERRORS:
                pass  # the row does not cover the node
            del self.graph.symbols[before:]
        if problem:
            raise GraphError(problem)
        return self._call(node, operands, types)

    def _foreign(self, node: Any, args: Sequence[Value]) -> Sequence[Value]:
        """Return the results of a node whose op ONNX does not define, such as onnxruntime's own.

        onnxruntime infers the types that no table and no value_info states.
        """
        attrs = {text_of(each.name): self._python(each) for each in node.attribute}
        operands = dict(zip(map(text_of, node.input), args, strict=True))
        operands |= {name: self.value(name) for name in outer_names(graphs_of(node))}
        types = self._types(node, attrs, {}, args)
        is_unknown = any(name and self._protos[name] is None for name in node.output)
        if is_unknown or self.model.is_defined(domain_of(node)):
            bound = self._bound(node, {name: x for name, x in operands.items() if x is not None})
            try:
                result_protos = bound.result_types()
            except GraphError as error:
                reason, fixes = error.problem, error.fixes
                raise self._no_op(node).having(reason=reason, fixes=fixes) from None
            types = self._types(node, attrs, result_protos, args)
        return self._call(node, operands, types)

    def _no_op(self, node: Any) -> GraphError:
        """Return the error for an op that neither onnx nor onnxruntime has."""
        domain = domain_of(node)
        return GraphError(
            f"onnx has no op {text_of(node.op_type)} in version {self.opsets[domain]} of the "
            f"operator set {domain or 'ai.onnx'!r}, no function of the model has that name, and "
            "onnxruntime does not tell the types of its results"
        )

    def _agreeing(
        self, call: NodeCall, schema: Any, node: Any, args: Sequence[Value]
    ) -> list[Value]:
        """Return the operands of a node in types that its op takes, with a note for each cast."""
        first = text_of(node.output[0])
        type_ = self.declared.get(first)
        dtype = None if type_ is None else DTYPES.get(type_.tensor_type.elem_type)
        declared = Declared(dtype, first in self._outputs)
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

    def _attributes_of(self, node: Any, schema: Any) -> dict[str, Any]:
        """Return the attributes of a node, with the defaults of the schema."""
        attrs = {name: self._python(value) for name, value in _defaults(schema).items()}
        for attribute in node.attribute:
            name, value = text_of(attribute.name), self._python(attribute)
            if name in ELEMENT_TYPES and isinstance(value, int) and value not in _ELEMENTS:
                what = f"onnx {self.onnx.__version__} has no element type {value}"
                raise GraphError(f"{what}, which the attribute {name} names")
            attrs[name] = value
        return attrs

    def _python(self, attribute: Any) -> Any:
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

    # -- types

    def _inference(
        self,
        schema: Any,
        node: Any,
        operands: Mapping[str, Value],
        attrs: Mapping[str, Any],
        args: Sequence[Value],
    ) -> tuple[list[TensorType | None], str]:
        """Return the types that ONNX infers for the results, and why it refuses the node, if so."""
        types: dict[str, Any] = {}
        data: dict[str, Any] = {}
        for name, symbol in operands.items():
            if symbol is None:
                continue
            types[name] = self.onnx_type(symbol)
            if type(symbol.type) is TensorType and symbol.dtype.is_integer and symbol.rank < 2:
                value = self.static.of(symbol)
                if value is not None and value.dtype != object and not symbol.dtype.narrow:
                    data[name] = self.onnx.numpy_helper.from_array(
                        np.asarray(value, order="C"), name
                    )
        opsets = [self.onnx.helper.make_opsetid(*pair) for pair in self.opsets.items()]
        try:
            inference = self.onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, None, opsets
            )
            problem = ""
        except Exception as error:  # such as InferenceError; the node is refused with it
            inference, problem = {}, str(error)
        return self._types(node, attrs, inference, args), problem

    def _types(
        self,
        node: Any,
        attrs: Mapping[str, Any],
        inference: dict[str, Any],
        args: Sequence[Value],
    ) -> list[TensorType | None]:
        """Return the types of a node's results: as inferred, stated by tables, or declared."""
        results: list[TensorType | None] = []
        stated: list[ResultType] = []
        if domain_of(node) and args and args[0] is not None:
            stated = result_types(text_of(node.op_type), attrs, self.onnx_type(args[0]))
        for name, (element, sizes) in zip(node.output, stated, strict=False):
            if name not in inference or not inference[name].tensor_type.HasField("shape"):
                inference[name] = self.onnx.helper.make_tensor_type_proto(element, sizes)
        sizes = None
        if not domain_of(node) and not all(
            name in inference and _is_complete(inference[name]) for name in node.output
        ):
            sizes = self._known_sizes(text_of(node.op_type), attrs, args)
        for name in node.output:
            if sizes is not None and name in inference:
                self._complete(inference[name].tensor_type, sizes)
            type_ = self._completed(inference.get(name), self.declared.get(name))
            inference[name] = type_
            result = None if type_ is None else self.graphir_type(type_, text_of(name))
            results.append(result)
        self._protos = inference
        return results

    def _known_sizes(
        self, op: str, attrs: Mapping[str, Any], args: Sequence[Value]
    ) -> Sequence[Size | None] | None:
        """Return the sizes of the results of an op that its operands tell; None for a size."""

        def values_of(symbol: Symbol) -> list[Any] | None:
            value = self.static.of(symbol)
            return None if value is None else value.ravel().tolist()

        sizes = sizes_of(op, attrs, args, values_of)
        if sizes is not None:
            return sizes
        rank = rank_of(op, attrs, args)
        return None if rank is None else [None] * rank

    def _complete(self, tensor: Any, sizes: Sequence[Size | str | None]) -> None:
        """Set the sizes of an inferred type of an array that are unknown."""
        if not tensor.elem_type or (
            tensor.HasField("shape") and len(tensor.shape.dim) != len(sizes)
        ):
            return
        if not tensor.HasField("shape"):
            empty = self.onnx.helper.make_tensor_type_proto(tensor.elem_type, [None] * len(sizes))
            tensor.CopyFrom(empty.tensor_type)
        for dim, size in zip(tensor.shape.dim, sizes, strict=False):
            if size is not None and not dim.HasField("dim_value") and not dim.HasField("dim_param"):
                if isinstance(size, int):
                    dim.dim_value = size
                else:
                    dim.dim_param = str(size)

    def _completed(self, type_: Any, declared: Any) -> Any:
        """Return an inferred type, with the declared rank and names of sizes where it has none.

        Declared numbers are left out: a size that ONNX does not infer depends on values, and an
        exporter may have declared that of its example.
        """
        if type_ is None or declared is None or not type_.HasField("tensor_type"):
            return declared if type_ is None else type_
        tensor, other = type_.tensor_type, declared.tensor_type
        if not other.HasField("shape"):
            return type_
        self._complete(tensor, [_param_of(dim) or None for dim in other.shape.dim])
        return type_

    def _conformed(self, symbol: Symbol, type_: TensorType | None) -> Symbol:
        """Return a result in the dtype that ONNX has for it; GraphError for another shape."""
        if type_ is None or type(type_) is not TensorType:
            return symbol
        pairs = zip(symbol.shape, type_.shape, strict=True)
        if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
            raise GraphError(f"the row gives another shape than {type_}", got=str(symbol.type))
        if symbol.dtype is type_.dtype:
            return symbol
        result = self.graph.emit(ops.cast, (symbol,), {"to": type_.dtype})
        rule = self.graph.rules.name
        origin = Origin("result", "onnx", result.location, rule, symbol.dtype, type_.dtype)
        result.source = (origin,)
        return result

    # -- ways

    def _by_row(
        self, call: NodeCall, node: Any, schema: Any, args: Sequence[Value], attrs: dict[str, Any]
    ) -> Sequence[Value] | None:
        if schema.name in CONTROL:
            return CONTROL[schema.name](self, call, args, attrs)
        row = ROWS.get(schema.name)
        if row is None or any(type(x.type) is not TensorType for x in args if x is not None):
            return None
        values = {
            name: self.graph.constant_of(self.model.array(value))
            if isinstance(value, self.onnx.TensorProto)
            else value
            for name, value in attrs.items()
        }
        result = row(call, *args, **values)
        if result is None:
            return None
        several = isinstance(result, (list, tuple))
        symbols: list[Value] = [*cast("Any", result)] if several else [result]
        return symbols if len(symbols) >= len(result_names(node)) else None

    def _by_body(
        self, call: NodeCall, node: Any, schema: Any, args: Sequence[Value], attrs: dict[str, Any]
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
                self.onnx.TypeProto() if x is None else self.onnx_type(x) for x in args
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
        function: Any,
        node: Any,
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
            inner._op = self._op or op
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

    def _note_versions(self, function: Any) -> None:
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
        self, node: Any, values: Mapping[str, Value], types: Sequence[TensorType | None]
    ) -> Sequence[Value]:
        """Return the results of a node as those of a call."""
        operands = {name: symbol for name, symbol in values.items() if symbol is not None}
        if text_of(node.op_type) in _RANDOM and not domain_of(node):
            text = f"{self._here}: {text_of(node.op_type)} is random: the values of the graph"
            self.notes.append(f"{text} differ from run to run")
        function = self._bound(node, operands)
        parts = [
            OpaqueType(f"{text_of(node.op_type)}:{i}") if type_ is None else type_
            for i, type_ in enumerate(types)
            if node.output[i]
        ]
        attrs = {"callee": Callee(f"onnx.{node.op_type}", function), "types": TupleType(parts)}
        results = iter(self.control(ops.control.call, [*operands.values()], attrs))
        symbols = [next(results) if name else None for name in node.output]
        for name, symbol in zip(node.output, symbols, strict=True):
            type_ = self._protos.get(name)
            if symbol is not None and type(symbol.type) is not TensorType and type_ is not None:
                self.types[symbol] = type_
        return symbols

    def _bound(self, node: Any, operands: Mapping[str, Symbol]) -> BoundNode:
        """Return a node as a function of its operands."""
        types = {name: self.onnx_type(symbol) for name, symbol in operands.items()}
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

_ROW_ERRORS = (
    *(GraphirError, TypeError, ValueError, LookupError, ArithmeticError, MemoryError),
    AttributeError,
)
"""The exceptions of rows on nodes that they do not cover."""

_MOST_INSIDE = 1 << 26
"""The most bytes of a constant that the model of a call has inside, for which it is copied."""

STRING = 8
"""ONNX's number of text."""

NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
"""ONNX's numbers of dtypes (TensorProto.DataType)."""

_ELEMENTS = {0, STRING, *DTYPES}


def _param_of(dim: Any) -> str:
    """Return the name of a size; "" for texts that exporters write of an unknown size."""
    return _name_in(text_of(dim.dim_param))


@lru_cache(4096)
def _name_in(text: str) -> str:
    return "" if text == "None" or not re.search(r"\w", text) else text


def _is_complete(type_: Any) -> bool:
    """Whether an inferred type is that of an array whose sizes all have a number or a name."""
    tensor = type_.tensor_type
    return tensor.HasField("shape") and all(x.WhichOneof("value") for x in tensor.shape.dim)


@lru_cache(4096)
def _dim_of(text: str) -> Size:
    """Return the dim of a text of a model; a text that is no expression becomes a name."""
    try:
        return Dim.of(text)
    except GraphirError:
        return Dim.of(identifier(text))


def _dim_names(text: str) -> set[str]:
    """Return the names in the dim of a text; none in "", an unknown size."""
    size = _dim_of(text) if text else 0
    return {*size.names()} if isinstance(size, Dim) else set()


def _defaults(schema: Any) -> dict[str, Any]:
    """Return the default values of an op's attributes, messages of ONNX."""
    return {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type
    }
