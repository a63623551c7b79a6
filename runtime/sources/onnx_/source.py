"""`from_onnx`: the graph of an ONNX model.

Each node becomes the ops of its row, the nodes of its function, or a call. ONNX has no promotion:
the rules are "explicit", and every value has the dtype that ONNX infers for it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.decorators import uncollected
from graphir.ops.control import Callee
from graphir.ops.dims import Dim
from graphir.ops.types import OpaqueType, TupleType
from graphir.passes import dead_code
from graphir.public import (
    DType,
    ExecutionError,
    Graph,
    GraphError,
    Location,
    Op,
    Symbol,
    TensorType,
    ops,
)
from graphir.runtime.sources.onnx_.model import (
    DTYPES,
    OnnxModel,
    read_model,
    require_distinct,
    require_size,
    text_of,
)
from graphir.runtime.sources.onnx_.node_importer import NodeImporter
from graphir.runtime.sources.onnx_.node_types import (
    NUMBERS,
    STRING,
    ModelTypes,
    born_at,
    dim_names,
    dim_of,
    param_of,
    type_name,
    type_text,
)
from graphir.runtime.sources.onnx_.nodes import in_order, location_of, outer_names
from graphir.runtime.sources.onnx_.static_values import StaticValues
from graphir.runtime.sources.onnx_.stored_types import stored_type_notes
from graphir.runtime.sources.onnx_.wire_format import (
    GraphProto,
    Message,
    NodeProto,
    Onnx,
    TypeProto,
)
from graphir.runtime.sources.op_rows import identifier


@uncollected
def from_onnx(model: Any, /, **sizes: Any) -> Graph:
    """Return the graph of an ONNX model: a path, the bytes of a file, or an onnx.ModelProto.

    Inputs have the names of the model's inputs. Initializers are constants. The keywords are sizes
    of symbolic dims, shapes of inputs, and arrays: the values of inputs that become constants, such
    as axes. Text comes and goes as the numbers of its characters: `x[..., None].view(np.uint32)` of
    a NumPy array of str. The rules are "explicit". A node that no op stands for becomes the op
    `call`. Raises GraphError for a model that is not valid, with the node.
    """
    return import_model(model, sizes)[0]


def import_model(model: Any, sizes: Mapping[str, Any]) -> tuple[Graph, list[OperandCast]]:
    """Return the graph of a model, and the casts that it needs to be valid."""
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
    notes = [*importer.notes, *stored_type_notes(graph)]
    graph.describe(notes=[*dict.fromkeys(notes)])  # a body may be imported twice
    return graph, importer.casts


class OperandCast(NamedTuple):
    """A cast of an operand, by its place, to the dtype that ONNX demands in a node.

    `result` is the name of the node's first result.
    """

    result: str
    place: int
    dtype: DType


Value: TypeAlias = "Symbol | None"


class OnnxImporter:
    """The names of a model's graph, subgraph or function, whose nodes it adds to a graph.

    `outer_op` is the op whose function has the nodes, or "", and `op_location` its location.
    `here` is the location of the node that is imported, `attributes` are those of the function's
    call, and `layer` is the path of the functions. `output_names` are those of the model.
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
        self.casts: list[OperandCast] = []
        self.output_names: set[str] = set()
        self.outer_op = ""
        self.op_location: Location | None = None
        self.here = location or Location.at("", 1)
        self.attributes: Mapping[str, Any] = {}
        self.layer = ""

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
                f"{name!r} is declared {to}, and its {maker} gives {own}{born_at(symbol)}",
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
            self.notes.append(f"{self.here}: {text}, and its {maker} gives {symbol.type}")

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

    def constant(self, value: ArrayLike, dtype: DType) -> Symbol:
        """Return a 0-d constant."""
        return self.graph.constant_of((dtype, np.asarray(value, dtype.storage)))

    def note_cast(self, result: str, place: int, dtype: DType) -> None:
        """Remember a cast that a node needs to be valid."""
        self.casts.append(OperandCast(result, place, dtype))

    # -- subgraphs

    def inside(self, graph: Graph) -> OnnxImporter:
        """Return an importer of nodes that belong to the node that is imported here."""
        inner = OnnxImporter(graph, self.model, self.opsets, self.here)
        inner.op_location, inner.attributes = self.op_location, self.attributes
        inner.notes, inner.types = self.notes, self.types
        inner.layer, inner.outer_op = self.layer, self.outer_op
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
        inner = self.inside(self.graph)
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
        inner = self.inside(graph)
        with graph.at(self.here):
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
            self.here = self.op_location or location_of(node, place, self.layer)
            with self.graph.at(self.here), self.model.place((node, place)):
                results = NodeImporter(self, self._resolved(node)).results()
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
            elif text_of(attribute.ref_attr_name) in self.attributes:
                actual = self.onnx.AttributeProto()
                actual.CopyFrom(self.attributes[attribute.ref_attr_name])
                actual.name = text_of(attribute.name)
                new.attribute.append(actual)
        return new


# -- the inputs and outputs of a model: types, sizes that a caller states, text as numbers


def add_inputs(importer: OnnxImporter, proto: GraphProto, stated: Mapping[str, Any]) -> None:
    """Add the inputs of the model's graph, and its initializers; `stated` are sizes and values."""
    importer.add_tensors(proto)
    importer.declare(proto)
    importer.output_names = {text_of(x.name) for x in proto.output}
    require_distinct([text_of(info.name) for info in proto.input], "inputs")
    sizes = importer.types.sizes = _stated_sizes(proto, stated)
    for info in proto.input:
        name = text_of(info.name)
        if name not in importer.tensors:
            is_text = info.type.tensor_type.elem_type == STRING
            full_type = _points_type(importer.onnx, info.type) if is_text else info.type
            type_ = _input_type(importer.types, full_type, name)
            if hasattr(sizes.get(name), "dtype") and not isinstance(sizes[name], TensorType):
                importer.values[name] = _input_value(importer.graph, name, type_, sizes[name])
                continue
            text = identifier(name)
            while text in importer.graph.input_names:
                text += "_"
            with importer.graph.at(Location.at(name, 0)):
                symbol = importer.graph.input(type_, name=text)
                importer.values[name] = _text(importer, symbol, info.type) if is_text else symbol


def _stated_sizes(proto: GraphProto, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the caller states, by the model's names, with the sizes in stated shapes.

    Raises GraphError for a name that the model does not have, and for a shape or a dtype that
    contradicts the model's.
    """
    infos = {text_of(info.name): info.type for info in proto.input}
    names = {identifier(name): name for name in infos} | {name: name for name in infos}
    sizes = {names.get(name, name): value for name, value in stated.items()}
    dims = [dim for type_ in infos.values() for dim in type_.tensor_type.shape.dim]
    texts = {param_of(dim) for dim in dims} - {""}
    for text in texts & sizes.keys():  # of a model that names a size `batch size`
        sizes.setdefault(str(dim_of(text)), sizes[text])
    symbols = {name for text in texts for name in dim_names(text)} | texts
    symbols |= {str(dim_of(text)) for text in texts}
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
            text = param_of(dim)
            if text in symbols and isinstance(size, int):
                fits &= sizes.setdefault(text, size) == size
            elif not text and (dim.dim_value > 0 or dim.HasField("dim_value")):
                fits &= size == dim.dim_value or dim.dim_value < 0
        if not fits:
            whole = ", ".join(text_of(x.dim_param) or str(x.dim_value or "?") for x in dims)
            raise GraphError(f"input {name!r} is {dtype}[{whole}]", got=str(value))
    return sizes


def _input_type(types: ModelTypes, type_: TypeProto, name: str) -> TensorType:
    tensor = type_.tensor_type
    dtype = DTYPES.get(tensor.elem_type)
    if not type_.HasField("tensor_type") or dtype is None:
        raise GraphError(f"input {name!r} is no array of numbers", got=type_text(type_), op="input")
    shape = getattr(types.sizes.get(name), "shape", types.sizes.get(name))
    if not isinstance(shape, (tuple, list)):
        if not tensor.HasField("shape"):
            text = identifier(name)
            raise GraphError(
                f"input {name!r} has no rank",
                fix=f"pass its shape: from_onnx(model, {text}=(2, 3)), "
                f'in the shell --input "{text}={dtype}[2, 3]"',
            )
        dims = enumerate(tensor.shape.dim)
        shape = [types.size(dim, f"{name}_{axis}") for axis, dim in dims]
    require_size(shape)
    return TensorType(dtype, tuple(cast("Any", shape)))


def _input_value(graph: Graph, name: str, type_: TensorType, value: ArrayLike) -> Symbol:
    """Return the constant of the value that the caller states for an input."""
    array = np.asarray(value)
    fits = [a == b or isinstance(b, Dim) for a, b in zip(array.shape, type_.shape, strict=False)]
    if array.dtype != type_.dtype.storage or array.ndim != type_.rank or not all(fits):
        got = f"{array.dtype}{list(array.shape)}"
        raise GraphError(f"input {name!r} is {type_}", got=got)
    return graph.constant_of((type_.dtype, array))


def output_symbol(importer: OnnxImporter, info: Message) -> Symbol:
    """Return the symbol of an output of the model; GraphError where it is no array."""
    name = text_of(info.name)
    symbol = importer.symbol(name)
    if type(symbol.type) is TensorType:
        if info.type.HasField("sequence_type") or info.type.HasField("map_type"):
            importer.notes.append(f"output {name!r} is the array of the values, without their keys")
        if symbol.op is ops.input or name in importer.tensors:
            importer.require_declared(name, symbol, "input or initializer")
        return symbol
    type_ = importer.types.opaque.get(symbol, info.type)
    type_ = type_ if type_.tensor_type.HasField("shape") else info.type
    if not type_.tensor_type.HasField("shape") and type_.HasField("tensor_type"):
        raise GraphError(f"output {name!r} has no known rank", fix="declare its shape")
    if type_.tensor_type.elem_type != STRING:
        raise GraphError(f"output {name!r} is no array", got=type_text(type_))
    types = [importer.types.graphir_type(_points_type(importer.onnx, type_), name)]
    return _text_step(importer, "onnx.characters", points_of_text, symbol, types)


def _points_type(onnx: Onnx, type_: TypeProto) -> Any:
    """Return the type of text as the numbers of its characters, on an axis more."""
    new = onnx.TypeProto.FromString(type_.SerializeToString())
    new.tensor_type.elem_type = NUMBERS[DType.uint32]
    new.tensor_type.shape.dim.add()
    return new


def _text(importer: OnnxImporter, symbol: Symbol, type_: TypeProto) -> Symbol:
    """Return text of the numbers of its characters."""
    types = [OpaqueType(type_text(type_))]
    result = _text_step(importer, "onnx.text", text_of_points, symbol, types)
    importer.types.opaque[result] = type_
    return result


def _text_step(
    importer: OnnxImporter,
    name: str,
    function: Callable[..., Any],
    operand: Symbol,
    types: Sequence[TensorType],
) -> Symbol:
    attrs = {"callee": Callee(name, function), "types": TupleType(types)}
    return importer.control(ops.control.call, (operand,), attrs)[0]


def text_of_points(points: NDArray[Any]) -> tuple[Any, ...]:
    """Return the text of the numbers of its characters, which are the last axis."""
    size = points.shape[-1]
    if not points.size:
        return (np.full(points.shape[:-1], "", object),)
    if points.max() > sys.maxunicode:
        raise ExecutionError("the number of a character is too large", got=str(points.max()))
    return (np.ascontiguousarray(points).view(f"U{size}")[..., 0].astype(object),)


def points_of_text(text: NDArray[Any]) -> tuple[Any, ...]:
    """Return the numbers of the characters of text, on a last axis."""
    return (np.asarray(text, "U")[..., None].view(np.uint32),)
