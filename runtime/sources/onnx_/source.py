"""`from_onnx`: the graph of an ONNX model.

Each node becomes the ops of its row, the nodes of its function, or a call. ONNX has no promotion:
the rules are "explicit", and every value has the dtype that ONNX infers for it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from graphir.decorators import uncollected
from graphir.passes import dead_code
from graphir.public import DType, Graph, GraphError, Location, Op, Symbol, TensorType, ops
from graphir.runtime.sources.onnx_.model import (
    DTYPES,
    OnnxModel,
    read_model,
    require_distinct,
    require_size,
    text_of,
)
from graphir.runtime.sources.onnx_.model_interface import add_inputs, output_symbol
from graphir.runtime.sources.onnx_.node_importer import NodeImporter
from graphir.runtime.sources.onnx_.node_types import ModelTypes, type_name
from graphir.runtime.sources.onnx_.nodes import in_order, location_of, outer_names
from graphir.runtime.sources.onnx_.static_values import StaticValues
from graphir.runtime.sources.onnx_.wire_format import GraphProto, NodeProto
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
