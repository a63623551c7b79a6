"""A recursive-descent parser of the textual form that printer.py writes.

The parser infers the type of every op and compares it with the type in the text, so a parsed graph
is as valid as a built graph.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import OperandInfo
from graphir.ir.graph import Graph
from graphir.ir.symbol import Symbol
from graphir.ir.verifier import INSERTABLE
from graphir.location import ASSIGN, NAMED_RULES, InPlaceLocation, Location, Origin, Source
from graphir.ops.attribute_record import content_of
from graphir.ops.attributes import choice
from graphir.ops.grammar import DEPTH, StoredConstant, Values, array_of_text, stored_array
from graphir.ops.op import Inference, Op
from graphir.ops.types import TensorType
from graphir.promotion import PromotionRules, rules
from graphir.source_text import path_under

VERSION = 1
"""The version of the format. The first line of a saved text names it: `graphir 1`."""

Directory: TypeAlias = "str | os.PathLike[str]"


def parse(
    text: str, constants: Mapping[str, Any] | None = None, sources: Directory | None = None
) -> Graph:
    """Parse the text of a graph, and check every type in it against inference.

    `constants` maps the names in npz("c0") to arrays. Reports read the source files that the text
    names only where these lie inside the directory `sources`. Raises ParseError with the position
    of malformed text and the expected token. A text raises no other exception.
    """
    parser = Parser(text, sources)
    parser.constants = constants
    return parser.graph()


class Parser(Values):
    """The parser of one text. The constructor reads the version line, and `graph` the rest.

    `archive` is the SHA-256 digest of the text's archive, or None for a text without a digest.
    """

    def __init__(self, text: str, sources: Directory | None = None) -> None:
        super().__init__(text)
        self.archive = self._version()
        self.constants: Mapping[str, Any] | None = None
        self._sources = sources
        self._paths: dict[str, str] = {}
        self._graphs: list[Graph] = []
        self.symbols: dict[str, Symbol] = {}
        self._inferences: dict[Any, Inference] = {}

    def graph(self) -> Graph:
        """Parse the rest of the text, and return its graph."""
        graph = self._heading()
        self._block(graph)
        if self.tokens[self.at]:
            self.expected("the end of the text")
        return graph

    def _block(self, graph: Graph) -> None:
        """Parse what follows the settings of a graph: its inputs, results and symbols."""
        self._graphs.append(graph)
        self._inputs(graph)
        results = self._results()
        self.expect("{")
        while self.tokens[self.at][:1] == "%":
            self._symbol(graph)
        self._return(graph, results)
        self.expect("}", "" if graph.outputs else ", 'return' or a symbol such as '%0'")
        self._graphs.pop()

    def value(self, depth: int = 0) -> Any:
        """Read the value of an attribute, which may be a graph of control flow."""
        return self._body() if self.tokens[self.at] == "graph" else super().value(depth)

    def _body(self) -> Graph:
        """Parse a graph of control flow, which has the settings of the graph around it."""
        if len(self._graphs) == DEPTH:
            self.fail(f"graphs nested more than {DEPTH} deep")
        self.expect("graph")
        self.expect("@", " and the graph's name")
        name = self.label("the graph's name")
        graph = self._graphs[-1].like(name=name, keeps_types=False)
        outer_symbols, self.symbols = self.symbols, {}
        self._block(graph)
        self.symbols = outer_symbols
        return graph

    # -- the header

    def _version(self) -> str | None:
        if not self.take("graphir"):
            return None
        start = self.at
        version = self.natural("the version of the format")
        if version != VERSION:
            self.fail(f"a text of version {version}; this graphir reads version {VERSION}", start)
        if not self.take("archive"):
            return None
        self.expect("sha256", " and the digest of the archive")
        return self.string("a digest in quotes")

    def _heading(self) -> Graph:
        self.expect("graph", " @name rules=...")
        self.expect("@", " and the graph's name")
        name = self.label("the graph's name")
        self.expect("rules", "=...")
        own_rules = self._rules()
        rules_before = self._rules() if self.take("from") else None
        settings = {
            "tf32": self._setting("tf32", "even", "away"),
            "functions": self._setting("functions", "numpy", "rounded"),
        }
        graph = Graph(name, rules=rules_before or own_rules, **settings)
        return graph.like(own_rules) if rules_before else graph

    def _setting(self, name: str, default: str, other: str) -> Any:
        """Read a setting of two values, where the text has it."""
        if not self.take(name):
            return default
        self.expect("=")
        start = self.at
        return self.attempt(start, choice(default, other), self.name(f"{default} or {other}"))

    def _rules(self) -> PromotionRules:
        self.expect("=")
        start = self.at
        return self.attempt(start, rules, self.label("the name of a rule set"))

    def _inputs(self, graph: Graph) -> None:
        self.expect("(", " and the inputs")
        self.separated(lambda: self._input(graph), ")")

    def _input(self, graph: Graph) -> None:
        start = self.at
        name = self._new_name("an input such as '%x'")
        if not name.isidentifier():
            self.fail(f"an input's name is an identifier, not {name!r}", start)
        self.expect(":", " and a type")
        type_ = self.type()
        attrs = graph.infer(ops.input, (), {"dtype": type_.dtype, "shape": type_.shape}).attrs
        place = Location.at("", *self.place(start))
        symbol = self.symbols[name] = graph.append(ops.input, (), attrs, type_, place)
        graph.inputs.append(symbol)
        graph.input_names.append(name)

    def _results(self) -> list[TensorType]:
        self.expect("->", " and the types of the results")
        self.expect("(")
        return self.separated(self.type, ")")

    # -- the body

    def _symbol(self, graph: Graph) -> None:
        start = self.at
        name = self._new_name("a symbol such as '%0'")
        self.expect("=")
        op_at, op = self.at, self._op()
        if op is ops.input:
            self.fail("inputs are declared in the header of the graph", op_at)
        args = self._operands(op, op_at)
        attrs, places = self._attributes(op)
        self.expect(":", " and a type")
        type_at, type_ = self.at, self.type()
        source = self._source(op, start)
        # Constants with the same name in the archive share one array and one inference.
        cache_key = (
            (type_, content_of(attrs)) if isinstance(attrs.get("value"), StoredConstant) else None
        )
        inference = self._inferences.get(cache_key)
        if inference is None:
            if op is ops.constant and "value" in attrs:
                attrs["value"] = self._constant(attrs["value"], places["value"], type_)
            inference = self._infer(graph, op, args, attrs, places, op_at)
            if cache_key:
                self._inferences[cache_key] = inference
        if inference.type is not type_:
            self.fail(f"the type here is {type_}, but {op.name} gives {inference.type}", type_at)
        self.symbols[name] = graph.append(op, args, inference.attrs, type_, source)
        graph.has_bodies |= op.kind == "control"

    def _new_name(self, what: str) -> str:
        start = self.at
        name = self.variable(what)
        if name in self.symbols:
            self.fail(f"%{name} is defined already", start)
        return name

    def _op(self) -> Op:
        start = self.at
        name = self.name("the name of an op")
        return ops.CATALOGUE.get(name) or self.attempt(start, ops.find, name)

    def _operands(self, op: Op, op_at: int) -> tuple[Symbol, ...]:
        if not op.operands and self.tokens[self.at] != "(":
            return ()
        self.expect("(", " and operands")
        args = tuple(self.separated(self._operand, ")"))
        fits = len(args) == len(op.operands) if not op.variadic else args or op.kind == "control"
        if not fits:
            takes = "at least one operand" if op.variadic else f"{len(op.operands)} operands"
            self.fail(f"{op.name} takes {takes} ({', '.join(op.operands)}), not {len(args)}", op_at)
        return args

    def _operand_list(self) -> tuple[Symbol, ...]:
        args = [self._operand()]
        while self.take(","):
            args.append(self._operand())
        return tuple(args)

    def _operand(self) -> Symbol:
        start = self.at
        name = self.variable("an operand such as '%0'")
        symbol = self.symbols.get(name)
        if symbol is None:
            self.fail(f"%{name} is not defined above", start)
        return symbol

    def _attributes(self, op: Op) -> tuple[dict[str, Any], dict[str, int]]:
        """Parse the attributes; return their values, and the token at which each value starts."""
        attrs: dict[str, Any] = {}
        places: dict[str, int] = {}
        if self.take("{"):
            self.separated(lambda: self._attribute(op, attrs, places), "}")
        return attrs, places

    def _attribute(self, op: Op, attrs: dict[str, Any], places: dict[str, int]) -> None:
        start = self.at
        name = self.name("the name of an attribute")
        attr = next((attr for attr in op.attributes_of((name,)) if attr.name == name), None)
        if attr is None:
            takes = ", ".join(attr.name for attr in op.attrs) or "none"
            self.fail(f"{op.name} has no attribute {name!r}; it takes {takes}", start)
        if name in attrs:
            self.fail(f"the attribute {name!r} is given twice", start)
        self.expect("=")
        places[name] = self.at
        attrs[name] = self.attribute(attr)

    def _constant(self, value: Any, start: int, type_: TensorType) -> Any:
        if not isinstance(value, StoredConstant):
            return self.attempt(start, array_of_text, value, type_)
        name_text = f'npz("{value.name}")'
        if self.constants is None:
            self.fail(
                f"the values of {name_text} are not in the text; give them with Graph.parse(text, "
                f"{{{value.name!r}: array}}), or use Graph.load(path) where Graph.save wrote both",
                start,
            )
        try:
            return stored_array(self.constants[value.name], type_)
        except KeyError:
            self.fail(f"no array named {value.name!r} is among the constants given", start)
        except Exception as error:
            self.refuse(error, start, op=name_text)

    def _infer(
        self,
        graph: Graph,
        op: Op,
        args: tuple[Symbol, ...],
        attrs: dict[str, Any],
        places: dict[str, int],
        start: int,
    ) -> Inference:
        try:
            return graph.infer(op, args, attrs)
        except Exception as error:
            types = [arg.type for arg in args]
            for attr in op.attributes_of(
                attrs
            ):  # if an attribute is wrong, report the position of that attribute
                if attr.name in attrs:
                    self.attempt(places[attr.name], attr.normalize, attrs[attr.name], types)
            operands = tuple(OperandInfo("", type_) for type_ in types)
            self.refuse(error, start, op=op.name, operands=operands)

    def _return(self, graph: Graph, results: list[TensorType]) -> None:
        start = self.at
        if not self.take("return"):
            if results:
                self.expected("a symbol such as '%0', or 'return' and the results of the header")
            return
        places = range(self.at, len(self.tokens), 2)
        outputs = self._operand_list()
        if len(outputs) != len(results):
            self.fail(f"{len(outputs)} results, but the header has {len(results)}", start)
        for place, symbol, type_ in zip(places, outputs, results, strict=False):
            if symbol.type is not type_:
                self.fail(f"a result of type {symbol.type}; the header says {type_}", place)
        graph.output(*outputs)

    # -- provenance

    def _source(self, op: Op, start: int) -> Source:
        if self.take("loc"):
            self.expect("(")
            location = self._location(",")
            self.expect(")")
            return location
        at = self.at
        if not self.take("because"):
            return Location.at("", *self.place(start))
        if op not in INSERTABLE:  # a constant has the origins of folded casts
            self.fail(
                f"only a cast or a real part can have been inserted, not {op.name}; give loc(...)",
                at,
            )
        return self._origins()

    def _location(self, comma: str) -> Location:
        """Parse a location: file, line, column, an optional end and an optional layer.

        `comma` is the token before the layer, "," or "".
        """
        file = self.string("a file in quotes")
        self.expect(":", " and a line")
        line = self.natural("a line")
        self.expect(":", " and a column")
        column = self.natural("a column")
        end: tuple[int | None, int | None] = (None, None)
        if self.take("to"):
            end_line = line if self.tokens[self.at] == ":" else self.natural("a line or ':'")
            self.expect(":", " and a column")
            end = end_line, self.natural("a column")
        kind = InPlaceLocation if self.take("in_place") else Location
        layer = ""
        if self.take(comma) if comma else self.tokens[self.at] == "layer":
            self.expect("layer")
            self.expect("=")
            layer = self.string("the name of a layer in quotes")
        return kind.at(file, line, column, *end, layer=layer, source=self._path(file))

    def _path(self, file: str) -> str:
        """Return the path from which reports may read a file that the text names, or ""."""
        if self._sources is None:
            return ""
        path = self._paths.get(file)
        if path is None:
            path = self._paths[file] = path_under(self._sources, file)
        return path

    def _origins(self) -> tuple[Origin, ...]:
        self.expect("(")
        origins = [self._origin()]
        while self.take(";"):
            origins.append(self._origin())
        self.expect(")", " or ';'")
        return tuple(origins)

    def _origin(self) -> Origin:
        start = self.at
        operand = self.name("the name of an operand")
        if self.take("["):
            operand += f"[{self.natural('the number of an operand')}]"
            self.expect("]")
        self.expect("of", " and an op")
        op = ASSIGN if self.take(ASSIGN) else self._function() or self._op().name
        is_quoted = self.tokens[self.at][:1] == '"'
        location = self._location("") if is_quoted else Location.at("", *self.place(start))
        self.expect(",", " and the rules that asked for the cast")
        rule = self._rule()
        self.expect(":")
        source, target = self._conversion()
        return Origin(operand, op, location, rule, source, target)

    def _function(self) -> str:
        """Read the name of a NumPy function, such as `np.interp`; "" for another name."""
        is_dotted = self.tokens[self.at + 1 : self.at + 2] == ["."]
        parts = [self.name("the name of an op")] if is_dotted else []
        while self.take("."):
            parts.append(self.name("the name of a function"))
        return ".".join(parts)

    def _rule(self) -> str:
        start = self.at
        name = self.label("the name of a rule set")
        return name if name in NAMED_RULES else self.attempt(start, rules, name).name

    def _conversion(self) -> tuple[DType, DType]:
        source = self.dtype()
        self.expect("->", " and a dtype")
        return source, self.dtype()
