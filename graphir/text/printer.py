"""The printer of graphs and symbols, in the textual form that parser.py reads back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.location import ASSIGN, Location, Origin
from graphir.ops.attribute_record import content_of
from graphir.ops.control import bodies
from graphir.ops.lexer import is_name
from graphir.ops.op import REQUIRED, Attr, BodyGraph

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.ops.types import TensorType

LARGEST = 64
"""The most elements of a constant printed in line; a larger constant prints as npz("c0")."""


def graph_text(graph: Graph, locations: bool = True) -> str:
    """Return a graph as text with one line for each symbol, for `Graph.parse` to read back.

    The text names constants of more than 64 elements, without their values (see
    `large_constants`). Without `locations` the text omits the user's source locations.
    """
    return "\n".join(text_lines(graph, locations))


def text_lines(graph: Graph, locations: bool = True) -> Iterator[str]:
    """Yield the lines of a graph's text."""
    npz_names = {symbol: name for name, symbol in _large(graph).items()}
    yield from _Lines(names_of(graph), npz_names, locations).of(graph, _settings(graph))


def symbol_text(symbol: Symbol) -> str:
    """Return the line of a symbol in its graph's text; for an input, its name and type.

    The graphs of control flow appear by their names.
    """
    graph = symbol.graph
    names = {each.index: graph.name_of(each) for each in (symbol, *symbol.args)}
    large = _large(graph) if _is_large(symbol) else {}
    lines = _Lines(names, {each: name for name, each in large.items()}, True, folds=True)
    return lines.typed(symbol) if symbol.op is ops.input else lines.line(symbol)


def definitions(graph: Graph) -> Callable[[Symbol], str]:
    """Return a function from a symbol of the graph to its line, without location and origins."""
    npz_names = {symbol: name for name, symbol in _large(graph).items()}
    lines = _Lines(names_of(graph), npz_names, False, folds=True)
    return lambda each: lines.typed(each) if each.op is ops.input else lines.definition(each)


def large_constants(graph: Graph) -> dict[str, NDArray[Any]]:
    """Return the arrays of the constants too large for text, by their names in the text."""
    return {name: symbol.attrs["value"] for name, symbol in _large(graph).items()}


class _Lines:
    """The lines of one graph's symbols. Each type and location is formatted once.

    If it `folds`, the graphs of control flow appear by their names.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        npz_names: Mapping[Symbol, str],
        locations: bool,
        folds: bool = False,
    ) -> None:
        self.names, self.npz_names, self.locations = names, npz_names, locations
        self.folds = folds
        self._types: dict[TensorType, str] = {}
        self._places: dict[int, str] = {}

    def of(self, graph: Graph, settings: str = "") -> Iterator[str]:
        """Yield the lines of the graph; `settings` go into its header."""
        inputs = ", ".join(map(self.typed, graph.inputs))
        results = ", ".join(self.type(symbol.type) for symbol in graph.outputs)
        yield f"graph @{_label(graph.name)}{settings} ({inputs}) -> ({results}) {{"
        for symbol in graph.symbols:
            if symbol.op is not ops.input:
                yield f"  {self.line(symbol)}"
        if graph.outputs:
            yield f"  return {self.operands(graph.outputs)}"
        yield "}"

    def body(self, graph: Graph) -> str:
        """Format a graph of control flow, which has the settings of the graph around it."""
        if self.folds:
            return f"@{_label(graph.name)}"
        lines = _Lines(names_of(graph), self.npz_names, self.locations)
        return "\n  ".join("\n".join(lines.of(graph)).split("\n"))

    def line(self, symbol: Symbol) -> str:
        return self.definition(symbol) + self.source(symbol)

    def definition(self, symbol: Symbol) -> str:
        attrs = self.attributes(symbol) if symbol.attrs else ""
        return (
            f"{self.names[symbol.index]} = {symbol.op.name}"
            + (f"({self.operands(symbol.args)})" if symbol.op.operands else "")
            + f"{attrs} : {self.type(symbol.type)}"
        )

    def typed(self, symbol: Symbol) -> str:
        return f"{self.names[symbol.index]}: {self.type(symbol.type)}"

    def operands(self, symbols: tuple[Symbol, ...]) -> str:
        names = self.names
        return ", ".join([names[symbol.index] for symbol in symbols])

    def type(self, type_: TensorType) -> str:
        text = self._types.get(type_)
        if text is None:
            text = self._types[type_] = str(type_)
        return text

    def attributes(self, symbol: Symbol) -> str:
        types = [arg.type for arg in symbol.args]
        fields = ", ".join(
            f"{attr.name}={self.value(symbol, symbol.attrs[attr.name])}"
            for attr in symbol.op.attributes_of(symbol.attrs)
            if not _is_default(attr, symbol.attrs[attr.name], types)
        )
        return f" {{{fields}}}" if fields else ""

    def value(self, symbol: Symbol, value: Any) -> str:
        if isinstance(value, BodyGraph):
            return self.body(cast("Graph", value))
        if symbol.op.kind == "control" and isinstance(value, tuple):
            return f"[{', '.join(self.body(graph) for graph in cast('tuple[Any, ...]', value))}]"
        if not isinstance(value, np.ndarray):
            return _literal(value)
        if symbol in self.npz_names:
            return f'npz("{self.npz_names[symbol]}")'
        return _literal(elements(cast("NDArray[Any]", value), symbol.dtype))

    def source(self, symbol: Symbol) -> str:
        """Format a symbol's location or origins, with a leading space."""
        if isinstance(symbol.source, tuple):
            return f" because({'; '.join(map(self.origin, symbol.source))})"
        if not self.locations:
            return ""
        key = id(symbol.source)
        text = self._places.get(key)
        if text is None:
            place = _place(symbol.source, ", ")
            text = self._places[key] = f" loc({place})" if place else ""
        return text

    def origin(self, origin: Origin) -> str:
        writes = origin.rule == ASSIGN
        place = _place(origin.location, " ", writes) if self.locations else ""
        return (
            f"{origin.operand} of {origin.op}{' ' if place else ''}{place}, "
            f"{_label(origin.rule)}: {origin.source} -> {origin.target}"
        )


def names_of(graph: Graph) -> dict[int, str]:
    """Return the names of all symbols in text, by index."""
    names = {
        symbol.index: f"%{_label(name)}"
        for symbol, name in zip(graph.inputs, graph.input_names, strict=True)
    }
    others = [symbol.index for symbol in graph.symbols if symbol.index not in names]
    names.update((index, f"%{place}") for place, index in enumerate(others))
    return names


def _settings(graph: Graph) -> str:
    """Format the rules of a graph, its rounding of tensor_float32, and its functions."""
    before = f" from={_label(graph.rules_before)}" if graph.rules_before else ""
    tf32 = f" tf32={graph.tf32}" if graph.tf32 != "even" else ""
    functions = f" functions={graph.functions}" if graph.functions != "numpy" else ""
    return f" rules={_label(graph.rules.name)}{before}{tf32}{functions}"


def _large(graph: Graph) -> dict[str, Symbol]:
    return {f"c{i}": symbol for i, symbol in enumerate(_large_symbols(graph))}


def _large_symbols(graph: Graph) -> Iterator[Symbol]:
    for symbol in graph.symbols:
        if symbol.op.kind == "control":
            for body in bodies(symbol.attrs):
                yield from _large_symbols(cast("Graph", body))
        elif _is_large(symbol):
            yield symbol


def _is_large(symbol: Symbol) -> bool:
    return symbol.op is ops.constant and symbol.attrs["value"].size > LARGEST


def _is_default(attr: Attr, value: Any, types: list[TensorType]) -> bool:
    if attr.default is REQUIRED:
        return False
    try:
        default = attr.normalize(attr.default, types)
    except GraphirError:  # these operands do not allow the default
        return False
    return content_of({"": default}) == content_of({"": value})


def _place(location: Location, comma: str, writes: bool = True) -> str:
    """Format a location. With `writes` the text marks the location of an in-place operator."""
    if not location.file:
        return ""
    layer = f"{comma}layer={_string(location.layer)}" if location.layer else ""
    start, end = (location.line, location.column), (location.end_line, location.end_column)
    line = "" if end[0] == start[0] else end[0]
    to = f" to {line}:{end[1]}" if end != start else ""  # as MLIR writes a range
    in_place = " in_place" if writes and location.in_place else ""
    return f"{_string(location.file)}:{start[0]}:{start[1]}{to}{in_place}{layer}"


def _label(name: str) -> str:
    return name if is_name(name) else _string(name)


def _string(text: str) -> str:
    literal = json.dumps(text, ensure_ascii=False)
    if literal.isprintable():
        return literal
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in literal)


def elements(array: NDArray[Any], dtype: DType) -> Any:
    """Convert an array exactly to nested lists of Python numbers."""
    with np.errstate(all="ignore"):  # a signalling NaN raises the invalid flag
        if dtype.is_float:
            return array.astype(np.float64).tolist()
        return array.astype(np.int64).tolist() if dtype.narrow else array.tolist()


def _literal(value: Any) -> str:
    """Format the value of an attribute: a number, name, dim or dtype, or a list of these."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, complex):
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    if isinstance(value, float):
        return _float(value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return _string(value) if isinstance(value, str) else str(value)


def _float(value: float) -> str:
    """Format a float in hexadecimal without float.hex's trailing zeros: 0x1.8p+0, inf, nan."""
    return re.sub(r"\.?0*p", "p", value.hex())
