"""Graph: the builder, and the ordered list of symbols it has built."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import TYPE_CHECKING, Any, Protocol

from graphir import ops
from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError, GraphirError
from graphir.escape import printable
from graphir.ir.creation import Makers
from graphir.ir.facade import Written
from graphir.ir.op_builder import OpBuilder
from graphir.ir.operands import may_be_operand, own, symbols_of
from graphir.ir.operators.composition import compose
from graphir.ir.pickling import restore, state_of
from graphir.ir.symbol import Symbol
from graphir.location import Location, Source, placing
from graphir.ops.attribute_record import NO_ATTRIBUTES, AttributeRecord
from graphir.ops.attributes import choice
from graphir.ops.dims import ShapeLike
from graphir.ops.op import CURRENT, Inferred, Op
from graphir.ops.types import TensorType, tensor_types
from graphir.promotion import PromotionRules
from graphir.promotion import rules as rules_named

if TYPE_CHECKING:
    from graphir.numpy_api.traced_numbers import NumberTrace

_NO_ATTRS: dict[str, Any] = {}


class GraphPolicy(Protocol):
    """What a graph asks of a policy: to judge the graph as its outputs are named."""

    def check(self, graph: Graph, outputs: Sequence[Symbol]) -> None:
        """Raise for what the outputs need but the policy forbids, warn of what it warns of."""


class Graph(Makers, Written):
    """An append-only list of symbols in topological order, with inputs, outputs and rules.

    `in_types` makes inputs at once; `out_types` is checked when outputs are named, never cast to.
    `rules` is a rule set or its name (default: that of the innermost `with rules(...)`, or "max");
    `tf32` is how tensor_float32 rounds ties: to "even", or "away" from zero as NVIDIA's cvt.rna.
    `policy`, such as a passes.Policy, judges the graph when `output` names what it computes.
    Raises PromotionError, ShapeError or GraphError at the line that builds something wrong.
    """

    def __init__(
        self,
        name: str = "graph",
        in_types: Iterable[TensorType] = (),
        out_types: Iterable[TensorType] | None = None,
        rules: str | PromotionRules | None = None,
        tf32: str = "even",
        policy: GraphPolicy | None = None,
    ) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("the name of a graph must be text", got=repr(name))
        self.name = name
        self.builder = OpBuilder(rules_named(rules))
        self.tf32 = choice("even", "away")(tf32, ())
        self.policy = policy
        self.rules_before: str | None = None
        self.symbols: list[Symbol] = []
        self.inputs: list[Symbol] = []
        self.input_names: list[str] = []
        self._input_name_set: set[str] = set()
        self.outputs: tuple[Symbol, ...] = ()
        self.out_types = None if out_types is None else tensor_types(out_types)
        self.tracing = False  # whether a function is traced, whose arrays may have other names
        self.in_place_sites: dict[int, tuple[Location, Location]] = {}
        self._memo: dict[str, tuple[Any, Any, Any]] = {}
        self.numbers: NumberTrace | None = None
        for type_ in tensor_types(in_types):
            self.input(type_)

    # -- what it has

    @property
    def rules(self) -> PromotionRules:
        """The rule set under which it is built."""
        return self.builder.rules

    @rules.setter
    def rules(self, rules: PromotionRules) -> None:
        self.builder = OpBuilder(rules)

    def __len__(self) -> int:
        return len(self.symbols)

    def __getitem__(self, position: int) -> Symbol:
        """The input at a position; GraphError where there is none."""
        try:
            return self.inputs[position]
        except (IndexError, TypeError):
            raise GraphError(
                f"graph {self.name!r} has {len(self.inputs)} inputs, and none at {position!r}"
            ) from None

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.symbols)

    def name_of(self, symbol: Symbol) -> str:
        """A symbol's name in text: that of an input, or else its place among the others."""
        if symbol.op is ops.input:
            at = next(i for i, each in enumerate(self.inputs) if each is symbol)
            return f"%{self.input_names[at]}"
        before = sum(1 for each in self.inputs if each.index < symbol.index)
        return f"%{symbol.index - before}"

    def __repr__(self) -> str:
        size = f"{len(self.symbols)} symbols"
        return f"<Graph {printable(self.name)}, {size}, rules {self.rules.name}>"

    def like(self, rules: PromotionRules | None = None) -> Graph:
        """An empty graph of the same name and settings, for a pass to emit into.

        Where the rules change, the new graph remembers the name of those that it had.
        """
        new = Graph(self.name, (), self.out_types, rules or self.rules, self.tf32)
        new.policy, new.rules_before = self.policy, self.rules.name if rules else self.rules_before
        return new

    def concrete_dtype(self, dtype: DType) -> DType:
        """The dtype of values: of a weak one, what the rules that made it commit it to."""
        rules = rules_named(self.rules_before) if self.rules_before else self.rules
        return rules.concrete_dtype(dtype)

    def stored(self, symbol: Symbol) -> DType:
        """The dtype that a symbol's values have: a weak literal keeps its 64 bits until it is used.

        Other weak values have the dtype that they are committed to.
        """
        literal = symbol.op is ops.constant and symbol.weak
        return symbol.dtype if literal else self.concrete_dtype(symbol.dtype)

    def verify(self) -> Graph:
        """Infer every symbol again and compare; GraphError names the first that is wrong."""
        from graphir.ir.verifier import verify

        verify(self)
        return self

    def memo(self, name: str, value: Any = None) -> Any:
        """What was derived from this graph under a name, while it has not grown since."""
        if value is not None:
            self._memo[name] = len(self.symbols), self.outputs, value
        size, outputs, value_ = self._memo.get(name, (None, None, None))
        return value_ if size == len(self.symbols) and outputs is self.outputs else None

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)

    # -- inputs, constants, outputs

    @placing
    def input(
        self,
        type: TensorType | DTypeLike,  # noqa: A002 -- what it is
        shape: ShapeLike = (),
        name: str | None = None,
    ) -> Symbol:
        """A value given when the graph runs; without a name it is called x0, x1, ..."""
        if isinstance(type, TensorType) and shape != ():
            raise GraphError(
                "pass a TensorType or a shape, not both", got=f"{type} and shape={shape!r}"
            )
        type_ = type if isinstance(type, TensorType) else TensorType(type, shape)
        if name is not None and not (isinstance(name, str) and name.isidentifier()):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("the name of an input must be an identifier", got=repr(name))
        if name in self._names():
            raise GraphError(
                f"graph {self.name!r} already has an input named {name!r}", fix="use another name"
            )
        symbol = self.emit(ops.input, (), {"dtype": type_.dtype, "shape": type_.shape})
        if name is not None:
            names = self._names()
            names.remove(self.input_names[-1])
            names.add(name)
            self.input_names[-1] = name
        return symbol

    @placing
    def output(self, *symbols: Symbol) -> None:
        """Name the results, once; GraphError where they are not of this graph or of out_types.

        The graph's policy judges what they need. Where it raises, outputs may be named anew.
        """
        if self.outputs:
            raise GraphError(
                f"graph {self.name!r} already has outputs",
                fix="pass all outputs to one call of output()",
            )
        if not symbols:
            raise GraphError("output() needs at least one symbol")
        for symbol in symbols:
            if not isinstance(symbol, Symbol):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise GraphError(
                    "an output must be a symbol", got=repr(symbol), fix="use g.scalar(...)"
                )
            own(self, symbol, "output")
        types = tuple(symbol.type for symbol in symbols)
        if self.out_types is not None and types != self.out_types:
            raise GraphError(
                f"graph {self.name!r} promises ({', '.join(map(str, self.out_types))}) and has ("
                f"{', '.join(map(str, types))})",
                fix=".cast(...) or .rebind(...) the outputs",
            )
        if self.policy is not None:
            self.policy.check(self, symbols)
        self.outputs = symbols

    @contextmanager
    def layer(self, name: str) -> Generator[Graph]:
        """Inside the block, symbols belong to this part of the program: `encoder/attention`."""
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("the name of a layer must be non-empty text", got=repr(name))
        with self.builder.within(name):
            yield self

    @contextmanager
    def at(self, location: Location) -> Generator[Graph]:
        """Inside the block, symbols arise at this place, whatever line makes them."""
        with self.builder.at(location):
            yield self

    def __enter__(self) -> Graph:
        CURRENT.set((*CURRENT.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.set(CURRENT.get()[:-1])

    # -- building

    @placing
    def implicit_cast(self, a: Any, b: Any) -> tuple[Symbol, Symbol]:
        """Both operands cast to the dtype in which they meet; one that has it stays itself."""
        x, y = symbols_of(self, ops.add, (a, b))
        to = self.rules.common(self.builder.types_of((x, y)))
        return (x if x.dtype is to else x.cast(to)), (y if y.dtype is to else y.cast(to))

    def apply(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols, arrays and literals of this graph."""
        before = len(self.symbols)
        try:
            if op.name in self.rules.composes:
                return compose(self, op, operands, attrs)
            return self.emit(op, symbols_of(self, op, operands), attrs)
        except GraphirError as error:
            del self.symbols[before:]  # the constants of a refused op
            raise self.builder.refuse(error, op, operands, _getframe(1)) from None

    def emit(self, op: Op, args: tuple[Symbol, ...], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols of this graph, its type inferred, its place in user code noted."""
        if attrs and self.numbers is not None:
            attrs = self.numbers.known(attrs)
        try:
            inference = self.builder.infer(op, args, attrs)
        except GraphirError as error:
            raise self.builder.refuse(error, op, args, _getframe(1)) from None
        symbols = self.symbols
        site = self.builder.locate(_getframe(1))
        symbol = Symbol(
            self, op, args, inference.attrs, inference.type, site, len(symbols), inference
        )
        symbols.append(symbol)
        if op is ops.input:
            self._declare(symbol)
        return symbol

    def _declare(self, symbol: Symbol) -> None:
        """Count an input among the inputs, under a name that is free."""
        names = self._names()
        name = next(x for i in count(len(self.inputs)) if (x := f"x{i}") not in names)
        self.inputs.append(symbol)
        self.input_names.append(name)
        names.add(name)

    def _names(self) -> set[str]:
        """The names of inputs; passes and the parser fill the list alone."""
        if len(self._input_name_set) != len(self.input_names):
            self._input_name_set = set(self.input_names)
        return self._input_name_set

    def binary(self, op: Op, lhs: Any, rhs: Any, depth: int = 2) -> Symbol:
        """What an operator, `depth` calls up, adds; NotImplemented for a foreign operand."""
        if lhs.__class__ is Symbol and rhs.__class__ is Symbol and lhs.graph is rhs.graph:
            builder = self.builder
            inference = builder.cache.by_types.get((op, lhs.type, rhs.type))
            if inference is not None:
                # In line, the common case: two symbols whose types have met under this op. It takes
                # 1.2 us so, and 3.3 us by `apply`.
                frame = _getframe(depth)
                try:
                    site = builder.sites[id(frame.f_code)][frame.f_lasti]
                except KeyError:
                    site = builder.locate(frame)
                symbols = self.symbols
                symbol = Symbol(
                    self,
                    op,
                    (lhs, rhs),
                    inference.attrs,
                    inference.type,
                    site,
                    len(symbols),
                    inference,
                )
                symbols.append(symbol)
                return symbol
        elif not (may_be_operand(lhs) and may_be_operand(rhs)):
            return NotImplemented
        return self.apply(op, (lhs, rhs), NO_ATTRIBUTES)

    def append(
        self,
        op: Op,
        args: tuple[Symbol, ...],
        attrs: Mapping[str, Any],
        type: TensorType,  # noqa: A002
        source: Source,
    ) -> Symbol:
        """Add a symbol whose type and normal attributes a pass knows; the verifier checks them."""
        symbols = self.symbols
        record = AttributeRecord.of(attrs)
        symbol = Symbol(self, op, args, record, type, source, len(symbols))
        symbols.append(symbol)
        return symbol

    def infer(self, op: Op, args: Sequence[Symbol], attrs: Mapping[str, Any]) -> Inferred:
        """Type, operand dtypes and normal attributes of an op on symbols, under the rules here."""
        return self.builder.infer(op, args, attrs)

    def kinds(self, symbols: Iterable[Symbol], structural: bool = False) -> Iterator[object]:
        """A key for each symbol in turn; what inference says of one it says of all that share it.

        That is the answer of inference where the symbol has it, which takes a quarter of the time,
        else or if `structural` the op, attributes and operand types.
        """
        by_value = self.rules.by_value
        for symbol in symbols:
            if not structural and symbol.inference is not None:
                yield symbol.inference
                continue
            key: list[Any] = [symbol.op, symbol.attrs]
            for arg in symbol.args:
                key.append(arg.type)
            if by_value:
                key += self.builder.types_of(symbol.args)
            yield tuple(key)
