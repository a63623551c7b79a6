"""Graph: the builder, and the ordered list of symbols it has built."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Token
from itertools import count
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import FrameType
from typing import Any, NoReturn

from graphir import ops
from graphir.attributes import choice, identity
from graphir.dims import ShapeLike
from graphir.dtypes import DTypeLike
from graphir.errors import GraphError, GraphirError
from graphir.literals import array_of, is_literal, literal_array
from graphir.location import INTERNAL, Location, Source, internal, placed, placing
from graphir.makers import Makers
from graphir.op import CURRENT, Inferred, Op
from graphir.promotion import PromotionRules
from graphir.promotion import rules as rules_named
from graphir.symbol import Symbol
from graphir.types import TensorType

internal(globals())

_NO_ATTRS: dict[str, Any] = {}


class Graph(Makers):
    """An append-only list of symbols in topological order, with inputs, outputs and rules.

    `in_types` makes inputs at once; `out_types` is checked when outputs are named, never cast to.
    `rules` is a rule set or its name (default: that of the innermost `with rules(...)`, or "max");
    `tf32` is how tensor_float32 rounds ties: to "even", or "away" from zero as NVIDIA's cvt.rna.
    Raises PromotionError, ShapeError or GraphError at the line that builds something wrong.
    """

    def __init__(
        self,
        name: str = "graph",
        in_types: Iterable[TensorType] = (),
        out_types: Iterable[TensorType] | None = None,
        rules: str | PromotionRules | None = None,
        tf32: str = "even",
    ) -> None:
        self.name = name
        self.rules = rules_named(rules)
        self.tf32 = choice("even", "away")(tf32, ())
        self.rules_before: str | None = None
        self.symbols: list[Symbol] = []
        self.inputs: list[Symbol] = []
        self.input_names: list[str] = []
        self.outputs: tuple[Symbol, ...] = ()
        self.out_types = None if out_types is None else tuple(out_types)
        self._inferred: dict[Any, Inferred] = {}
        self._layer = ""
        self._sites: dict[int, dict[int, Location]] = {}
        self._memo: dict[str, tuple[Any, Any, Any]] = {}
        self._entered: list[Token[Graph | None]] = []
        for type_ in in_types:
            self.input(type_)

    # -- what it has

    def __len__(self) -> int:
        return len(self.symbols)

    def __getitem__(self, position: int) -> Symbol:
        """The input at a position."""
        return self.inputs[position]

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.symbols)

    def name_of(self, symbol: Symbol) -> str:
        """A symbol's name in text: that of an input, or else its place among the others."""
        if symbol.op is ops.input:
            at = next(i for i, one in enumerate(self.inputs) if one is symbol)
            return f"%{self.input_names[at]}"
        before = sum(1 for one in self.inputs if one.index < symbol.index)
        return f"%{symbol.index - before}"

    def __str__(self) -> str:
        from graphir.printer import graph_text

        return graph_text(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}, {len(self.symbols)} symbols, rules {self.rules.name}>"

    @staticmethod
    def parse(text: str, constants: Mapping[str, Any] | None = None) -> Graph:
        """The graph that a text describes; ParseError says where it is malformed.

        `constants` holds the arrays of constants too large for text, by the names used there.
        """
        from graphir.parser import parse

        return parse(text, constants)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the text to `path`, and constants too large for it beside it, with suffix .npz."""
        from graphir.files import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Graph:
        """The graph that `save` wrote; ParseError names the file and the place of what is wrong."""
        from graphir.files import load

        return load(path)

    def like(self, rules: PromotionRules | None = None) -> Graph:
        """An empty graph of the same name and settings, for a pass to emit into.

        Where the rules change, the new graph remembers the name of those that it had.
        """
        new = Graph(self.name, (), self.out_types, rules or self.rules, self.tf32)
        new.rules_before = self.rules.name if rules else self.rules_before
        return new

    def verify(self) -> Graph:
        """Infer every symbol again and compare; GraphError names the first that is wrong."""
        from graphir.verifier import verify

        verify(self)
        return self

    def memo(self, name: str, value: Any = None) -> Any:
        """What was derived from this graph under a name, while it has not grown since."""
        if value is not None:
            self._memo[name] = len(self.symbols), self.outputs, value
        size, outputs, known = self._memo.get(name, (None, None, None))
        return known if size == len(self.symbols) and outputs is self.outputs else None

    def __getstate__(self) -> dict[str, Any]:
        caches: dict[str, Any] = {"_inferred": {}, "_sites": {}, "_memo": {}, "_entered": []}
        return {**self.__dict__, **caches, "rules": self.rules.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, rules=rules_named(state["rules"]))

    # -- inputs, constants, outputs

    @placing
    def input(
        self,
        type: TensorType | DTypeLike,  # noqa: A002 -- what it is
        shape: ShapeLike = (),
        name: str | None = None,
    ) -> Symbol:
        """A value given when the graph runs; without a name it is called x0, x1, ..."""
        known = type if isinstance(type, TensorType) else TensorType(type, shape)
        free = (x for i in count(len(self.inputs)) if (x := f"x{i}") not in self.input_names)
        called = name if name is not None else next(free)
        if not called.isidentifier():
            raise GraphError(f"an input's name is an identifier, not {called!r}")
        if called in self.input_names:
            raise GraphError(f"graph {self.name!r} has an input named {called!r} already")
        symbol = self.emit(ops.input, (), {"dtype": known.dtype, "shape": known.shape})
        self.inputs.append(symbol)
        self.input_names.append(called)
        return symbol

    @placing
    def output(self, *symbols: Symbol) -> None:
        """Name the results, once; GraphError where they are not of this graph or of out_types."""
        if self.outputs:
            raise GraphError(
                f"graph {self.name!r} has its outputs already; give all of them to one output()"
            )
        if not symbols:
            raise GraphError("output() needs at least one symbol")
        for symbol in symbols:
            if not isinstance(symbol, Symbol):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise GraphError(f"an output is a symbol, not {symbol!r}; g.scalar(...) makes one")
            self._own(symbol, "output")
        found = tuple(symbol.type for symbol in symbols)
        if self.out_types is not None and found != self.out_types:
            raise GraphError(
                f"graph {self.name!r} promises ({', '.join(map(str, self.out_types))}) and has "
                f"({', '.join(map(str, found))}); .cast(...) or .rebind(...) the outputs"
            )
        self.outputs = symbols

    @contextmanager
    def layer(self, name: str) -> Generator[Graph]:
        """Inside the block, symbols belong to this part of the program: `encoder/attention`."""
        outer = self._layer, self._sites
        self._layer, self._sites = (f"{self._layer}/{name}" if self._layer else name), {}
        try:
            yield self
        finally:
            self._layer, self._sites = outer

    def __enter__(self) -> Graph:
        self._entered.append(CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.reset(self._entered.pop())

    # -- building

    def apply(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols, arrays and literals of this graph."""
        try:
            args = self._arguments(op, operands)
        except GraphirError as error:
            self._refuse(error, op, operands)
        return self.emit(op, args, attrs)

    def emit(self, op: Op, args: tuple[Symbol, ...], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols of this graph, its type inferred, its place in user code noted."""
        try:
            inferred = self.infer(op, args, attrs)
        except GraphirError as error:
            self._refuse(error, op, args)
        symbols = self.symbols
        site = self._site(_getframe(1))
        symbol = Symbol(self, op, args, inferred.attrs, inferred.type, site, len(symbols))
        symbols.append(symbol)
        return symbol

    def binary(self, op: Op, lhs: Any, rhs: Any) -> Symbol:
        """What an operator adds; NotImplemented for an operand that is none of graphir's."""
        if lhs.__class__ is Symbol and rhs.__class__ is Symbol and lhs.graph is rhs.graph:
            inferred = self._inferred.get((op, lhs.type, rhs.type))
            if inferred is not None:
                # The common case, in line: two symbols whose types have met under this op.
                frame = _getframe(2)
                if id(frame.f_globals) not in INTERNAL:
                    try:
                        site = self._sites[id(frame.f_code)][frame.f_lasti]
                    except KeyError:
                        site = self._site(frame)
                    symbols = self.symbols
                    symbol = Symbol(
                        self, op, (lhs, rhs), inferred.attrs, inferred.type, site, len(symbols)
                    )
                    symbols.append(symbol)
                    return symbol
        elif not (_is_operand(lhs) and _is_operand(rhs)):
            return NotImplemented
        return self.apply(op, (lhs, rhs), _NO_ATTRS)

    def append(
        self,
        op: Op,
        args: tuple[Symbol, ...],
        attrs: dict[str, Any],
        type: TensorType,  # noqa: A002
        source: Source,
    ) -> Symbol:
        """Add a symbol whose type and normal attributes a pass knows; the verifier checks them."""
        symbols = self.symbols
        symbol = Symbol(self, op, args, attrs, type, source, len(symbols))
        symbols.append(symbol)
        return symbol

    def infer(self, op: Op, args: Sequence[Symbol], attrs: Mapping[str, Any]) -> Inferred:
        """Type, operand dtypes and normal attributes of an op on symbols, under the rules here."""
        types = tuple([arg.type for arg in args])
        if op is ops.constant:  # each has values of its own
            return op.infer(self.rules, types, attrs)
        # A cast, the most frequent of ops with attributes, is found by its dtype itself.
        cast = op is ops.cast and len(attrs) == 1
        key = (op, *types, *(attrs.items() if cast else identity(attrs) if attrs else ()))
        try:
            found = self._inferred.get(key)
        except TypeError:  # a list among the attributes
            return op.infer(self.rules, types, attrs)
        if found is None:
            found = self._inferred[key] = op.infer(self.rules, types, attrs)
        return found

    def _site(self, frame: FrameType) -> Location:
        """The location of the user's frame at or above this one, one object for each place."""
        while id(frame.f_globals) in INTERNAL and frame.f_back is not None:
            frame = frame.f_back
        code, offset = frame.f_code, frame.f_lasti
        # By id, since hashing a code object reads all of it; the Location keeps the code alive.
        sites = self._sites.get(id(code))
        if sites is None:
            sites = self._sites[id(code)] = {}
        site = sites.get(offset)
        if site is None:
            site = sites[offset] = Location(code, offset, self._layer)
        return site

    def _arguments(self, op: Op, operands: Sequence[Any]) -> tuple[Symbol, ...]:
        """The operands as symbols: arrays keep their dtype, literals take their partners'."""
        made: list[Any] = [
            operand if is_literal(operand) else self._symbol(operand, op) for operand in operands
        ]
        if all(isinstance(one, Symbol) for one in made):
            return tuple(made)
        joined = op.signature.joined
        group = [made[i] for i in (joined or range_(len(made)))]
        partners = [one.type for one in group if isinstance(one, Symbol)]
        for i, one in enumerate(made):
            if not isinstance(one, Symbol):
                alone = joined is not None and i not in joined
                dtype = op.signature.other if alone else self.rules.literal(one, partners)
                made[i] = self.constant_of(literal_array(one, dtype, self.rules, self.tf32))
        return tuple(made)

    def _symbol(self, operand: Any, op: Op) -> Symbol:
        if isinstance(operand, Symbol):
            return self._own(operand, op.name)
        if not _is_operand(operand):
            raise GraphError(
                f"{operand!r} is no operand; give a symbol, a number, or an array with a dtype"
            )
        return self.constant_of(array_of(operand, None, self.tf32))

    def _own(self, symbol: Symbol, what: str) -> Symbol:
        if symbol.graph is not self:
            raise GraphError(
                f"{what} in graph {self.name!r} was given {symbol.name}: {symbol.type} "
                f"({symbol.location}) of graph {symbol.graph.name!r}; symbols of two graphs never "
                "mix: make it an input here"
            )
        return symbol

    def _refuse(self, error: GraphirError, op: Op, operands: Sequence[Any]) -> NoReturn:
        """Raise the error again, with the op, its operands and the user's line."""
        shown = [
            f"{op.operand(i) if i < len(op.operands) or op.variadic else i}: "
            + (f"{one.type} ({one.location})" if isinstance(one, Symbol) else repr(one))
            for i, one in enumerate(operands)
        ]
        at = self._site(_getframe(2))
        raise placed(error, at, f"{op.name}({', '.join(shown)})") from None


range_ = range


def _is_operand(value: Any) -> bool:
    return isinstance(value, Symbol) or is_literal(value) or hasattr(value, "dtype")
