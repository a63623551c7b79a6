"""Graph: a list of symbols in topological order, and the methods that append to it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import Any, Protocol, TypeVar, get_args

from graphir import ops
from graphir.display import printable
from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError, GraphirError, Vocabulary
from graphir.hints import ArrayOrNumber, Functions, Ties
from graphir.ir.creation import Makers
from graphir.ir.op_builder import OpBuilder
from graphir.ir.operands import may_be_operand, own, symbols_of
from graphir.ir.operators.composition import compose
from graphir.ir.serialization import GraphFacade, Provenance, TraceState, restore, state_of
from graphir.ir.symbol import Symbol
from graphir.location import Location, Source, placing
from graphir.ops.attribute_record import NO_ATTRIBUTES, AttributeRecord
from graphir.ops.attributes import choice
from graphir.ops.dims import ShapeLike
from graphir.ops.op import CURRENT, BodyGraph, Inference, Op
from graphir.ops.types import TensorType, tensor_types
from graphir.promotion import PromotionRules, RulesLike
from graphir.promotion import rules as rules_named

Result = TypeVar("Result")

_TIES: Callable[..., Ties] = choice(*get_args(Ties))
_FUNCTIONS: Callable[..., Functions] = choice(*get_args(Functions))


class GraphPolicy(Protocol):
    """The interface of a policy: a graph calls `check` when `output` names its outputs."""

    def check(self, graph: Graph, outputs: Sequence[Symbol]) -> None:
        """Judge the casts that the outputs need: raise or warn, as the policy says."""


class Attempt:
    """A block of `Graph.attempt`: additions to a graph that last only if the block keeps them."""

    __slots__ = ("_before", "_graph", "_is_kept")

    def __init__(self, graph: Graph) -> None:
        self._graph, self._before, self._is_kept = graph, len(graph.symbols), False

    def keep(self, result: Result) -> Result:
        """Keep what the block has added; return `result`."""
        self._is_kept = True
        return result

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            self._graph.withdraw(self._before)


class Graph(Makers, GraphFacade, BodyGraph):
    """An append-only list of symbols in topological order, with inputs, outputs and rules.

    `in_types` are the types of inputs that the constructor adds. `output` compares the outputs with
    `out_types` and never casts to them. `rules` is a rule set or its name; the default is the rule
    set of the innermost `with rules(...)`, or "max". `tf32` is the rounding of ties in
    tensor_float32: "even", or "away" from zero as NVIDIA's cvt.rna. `policy`, such as a
    passes.Policy, judges the graph when `output` names its outputs. With `functions="rounded"`,
    `exp expm1 log log1p log2 sin cos tanh erf sigmoid` of floats up to float32 are correctly
    rounded; by default they have NumPy's results. Methods that add an op raise PromotionError,
    ShapeError or GraphError at the user's line of that op.
    """

    public_names = """
        apply at attempt concrete_dtype constant emit eye full functions implicit_cast input
        input_names inputs layer like load name name_of out_types output outputs parse policy range
        rules save scalar set_interface storage_dtype symbols tf32 vector verify with_outputs
    """

    is_body = False
    """Whether the graph is that of a body of control flow while it is traced."""

    def __init__(
        self,
        name: str = "graph",
        in_types: Iterable[TensorType] = (),
        out_types: Iterable[TensorType] | None = None,
        rules: RulesLike | None = None,
        tf32: Ties = "even",
        policy: GraphPolicy | None = None,
        functions: Functions = "numpy",
    ) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("the name of a graph must be text", got=repr(name))
        self.name = name
        self.builder = OpBuilder(rules_named(rules))
        self.tf32 = _TIES(tf32, ())
        self.functions: Functions = _FUNCTIONS(functions, ())
        self.policy = policy
        self.rules_before: str | None = None
        self.symbols: list[Symbol] = []
        self.inputs: list[Symbol] = []
        self.input_names: list[str] = []
        self._input_name_set: set[str] = set()
        self.outputs: tuple[Symbol, ...] = ()
        self.out_types = None if out_types is None else tensor_types(out_types)
        self._memo: dict[str, tuple[Any, Any, Any]] = {}
        self.has_bodies = False  # true where symbols may have graphs, or tuples of values
        self.provenance = Provenance()
        self.trace_state = TraceState()
        for type_ in tensor_types(in_types):
            self.input(type_)

    # -- contents and derived facts

    @property
    def rules(self) -> PromotionRules:
        """The rule set under which the graph is built."""
        return self.builder.rules

    @rules.setter
    def rules(self, rules: PromotionRules) -> None:
        self.builder = OpBuilder(rules)

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Word the fixes of errors in the code of a front end, such as that of arrays."""
        self.builder = OpBuilder(self.rules, vocabulary)

    def __len__(self) -> int:
        return len(self.symbols)

    def __getitem__(self, position: int) -> Symbol:
        """Return the input at a position; GraphError where there is no such input."""
        try:
            return self.inputs[position]
        except (IndexError, TypeError):
            raise GraphError(
                f"graph {self.name!r} has {len(self.inputs)} inputs", got=f"g[{position!r}]"
            ) from None

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self.symbols)

    def name_of(self, symbol: Symbol) -> str:
        """Return a symbol's name in text.

        An input has its own name. Another symbol is named by its place among the symbols that are
        not inputs.
        """
        if symbol.op is ops.input:
            at = next(i for i, each in enumerate(self.inputs) if each is symbol)
            return f"%{self.input_names[at]}"
        before = sum(1 for each in self.inputs if each.index < symbol.index)
        return f"%{symbol.index - before}"

    def __repr__(self) -> str:
        size = f"{len(self.symbols)} symbols"
        return f"<Graph {printable(self.name)}, {size}, rules {self.rules.name}>"

    def like(
        self, rules: PromotionRules | None = None, name: str = "", keeps_types: bool = True
    ) -> Graph:
        """Return an empty graph of the same name and settings, for a pass to emit into.

        With other `rules`, `rules_before` of the new graph is the name of this graph's rules. The
        new graph promises the types of this graph's outputs if it `keeps_types`.
        """
        out_types = self.out_types if keeps_types else None
        new = Graph(name or self.name, (), out_types, rules or self.rules, self.tf32)
        new.rules_before = self.rules.name if rules else self.rules_before
        new.inherit(self)
        return new

    def inherit(self, graph: Graph) -> None:
        """Take over the facts besides symbols and rules of the graph that this one derives from."""
        self.policy, self.has_bodies = graph.policy, graph.has_bodies
        self.functions, self.provenance = graph.functions, graph.provenance

    def set_interface(
        self,
        inputs: Iterable[Symbol] | None = None,
        names: Iterable[str] | None = None,
        outputs: Iterable[Symbol] | None = None,
    ) -> Graph:
        """Set inputs, their names, and outputs of a graph that a pass emits; return the graph.

        What is None stays. Unlike `output`, the method judges no casts and may be called again.
        """
        self.inputs = self.inputs if inputs is None else [*inputs]
        self.input_names = self.input_names if names is None else [*names]
        self.outputs = self.outputs if outputs is None else tuple(outputs)
        return self

    def promise(self, out_types: Iterable[TensorType] | None) -> Graph:
        """Set the types that the outputs are to have, None for any; return the graph."""
        self.out_types = None if out_types is None else tuple(out_types)
        return self

    def with_outputs(self, outputs: Iterable[Symbol]) -> Graph:
        """Return a graph of the same symbols with other outputs."""
        new = self.like()
        new.symbols = self.symbols
        return new.set_interface(self.inputs, self.input_names, outputs)

    def concrete_dtype(self, dtype: DType) -> DType:
        """Return the concrete dtype of values of `dtype`.

        For a weak dtype it is the default dtype of the rules under which the graph was built.
        """
        if not dtype.weak:
            return dtype
        rules = PromotionRules.find(self.rules_before) if self.rules_before else self.rules
        return rules.concrete_dtype(dtype)

    def storage_dtype(self, symbol: Symbol) -> DType:
        """Return the dtype in which a symbol's values are stored.

        A weak literal keeps its 64 bits until an op uses it. Every other weak symbol is stored in
        its concrete dtype.
        """
        literal = symbol.op is ops.constant and symbol.weak
        return symbol.dtype if literal else self.concrete_dtype(symbol.dtype)

    def verify(self) -> Graph:
        """Check the graph by inferring every symbol again, and return the graph.

        Raises GraphError, which names the first symbol that differs.
        """
        from graphir.ir.verifier import verify

        verify(self)
        return self

    def memo(self, name: str, value: Any = None) -> Any:
        """Return the result cached under a name, or None; store `value` first if it is given.

        A cached result is valid while the graph has the same number of symbols and the same
        outputs.
        """
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
        type: TensorType | DTypeLike,  # noqa: A002 -- the field's own word
        shape: ShapeLike = (),
        name: str | None = None,
    ) -> Symbol:
        """Add an input: an array that the caller passes when the graph runs.

        `type` is a TensorType, or a dtype that goes with `shape`. `name` is an identifier; without
        it the input is called x0, x1, ... Raises GraphError for a name that is taken.
        """
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
        """Name the outputs of the graph. A second call raises GraphError.

        Raises GraphError for a symbol of another graph, and for types other than `out_types`. The
        graph's policy judges the casts that the outputs need. If the policy raises, the graph has
        no outputs yet, and a later call may name others.
        """
        if self.outputs:
            raise GraphError(
                f"graph {self.name!r} already has outputs",
                fix="pass all outputs to one call of output()",
            )
        if not symbols:
            raise GraphError("no outputs", op="output", fix="pass at least one symbol: g.output(x)")
        for symbol in symbols:
            if not isinstance(symbol, Symbol):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise GraphError(
                    "an output must be a symbol", got=repr(symbol), fix="use g.scalar(...)"
                )
            own(self, symbol, "output")
            _ = symbol.dtype  # a tuple has none, and raises an error
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
        """Give the symbols added inside the block a layer name.

        Nested blocks join their names: `encoder/attention`.
        """
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("the name of a layer must be non-empty text", got=repr(name))
        with self.builder.within(name):
            yield self

    @contextmanager
    def at(self, location: Location) -> Generator[Graph]:
        """Give the symbols added inside the block this location, whatever line adds them."""
        with self.builder.at(location):
            yield self

    def __enter__(self) -> Graph:
        CURRENT.set((*CURRENT.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.set(CURRENT.get()[:-1])

    # -- building

    @placing
    def implicit_cast(self, a: ArrayOrNumber, b: ArrayOrNumber) -> tuple[Symbol, Symbol]:
        """Return both operands, cast to their common dtype under the graph's rules.

        An operand that has the common dtype is returned unchanged.
        """
        x, y = symbols_of(self, ops.add, (a, b))
        to = self.rules.common(self.builder.types_of((x, y)))
        return (x if x.dtype is to else x.cast(to)), (y if y.dtype is to else y.cast(to))

    def apply(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols of this graph, arrays and Python literals; return its symbol.

        Arrays and literals become constants first. If the op is refused, those constants are
        removed again, and the GraphirError names the op, its operands and the user's line.
        """
        if self.trace_state.body is not None:
            return self.trace_state.body.apply(op, operands, attrs)
        before = len(self.symbols)
        try:
            if op.name in self.rules.composes:
                return compose(self, op, operands, attrs)
            return self.emit(op, symbols_of(self, op, operands), attrs)
        except GraphirError as error:
            self.withdraw(before)  # remove the constants made for the refused op
            raise self.builder.refuse(error, op, operands, _getframe(1)) from None

    def emit(self, op: Op, args: tuple[Symbol, ...], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols of this graph; return its symbol.

        The method infers the type and records the user's line as the location.
        """
        trace_state = self.trace_state
        if trace_state.body is not None and op is not ops.input:
            inner = trace_state.body
            return inner.emit(op, tuple([own(inner, arg, op.name) for arg in args]), attrs)
        if attrs and trace_state.numbers is not None:
            attrs = trace_state.numbers.concrete_attrs(attrs)
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
        elif op.kind == "control":
            self.has_bodies = True
        return symbol

    @property
    def innermost(self) -> Graph:
        """The graph that receives new symbols: a body of control flow while it is traced."""
        graph: Graph = self
        while graph.trace_state.body is not None:
            graph = graph.trace_state.body
        return graph

    def attempt(self) -> Attempt:
        """Context manager: roll the graph back after the block, unless it keeps its additions.

        `with graph.attempt() as attempt:` emits symbols, and `return attempt.keep(result)` makes
        them lasting. A block that raises, or ends otherwise, leaves the graph as it was.
        """
        return Attempt(self)

    def withdraw(self, before: int) -> None:
        """Remove the symbols from an index on, such as those of a refused op, inputs too."""
        del self.symbols[before:]
        if any(symbol.index >= before for symbol in self.inputs):
            places = [place for place, symbol in enumerate(self.inputs) if symbol.index < before]
            self.inputs = [self.inputs[place] for place in places]
            self.input_names = [self.input_names[place] for place in places]

    def clear(self) -> None:
        """Remove all symbols: they and their graph refer to each other, which keeps memory."""
        self.symbols.clear()
        self.inputs.clear()
        self.outputs = ()

    def captured(self, symbol: Symbol) -> Symbol | None:
        """Return this graph's symbol for the symbol of a graph around it; None if there is none."""
        return None

    def _declare(self, symbol: Symbol) -> None:
        """Append a symbol to the inputs, under the next free name of x0, x1, ..."""
        names = self._names()
        name = next(x for i in count(len(self.inputs)) if (x := f"x{i}") not in names)
        self.inputs.append(symbol)
        self.input_names.append(name)
        names.add(name)

    def _names(self) -> set[str]:
        """Return the set of input names.

        Passes and the parser append to `input_names` directly, so the set is rebuilt when its size
        differs.
        """
        if len(self._input_name_set) != len(self.input_names):
            self._input_name_set = set(self.input_names)
        return self._input_name_set

    def binary(self, op: Op, lhs: Any, rhs: Any, depth: int = 2) -> Symbol:
        """Add the op of a Python operator and return its symbol.

        The user's frame is `depth` calls up. Returns NotImplemented for a foreign operand, so that
        Python tries the operand's own operator.
        """
        if lhs.__class__ is Symbol and rhs.__class__ is Symbol and lhs.graph is rhs.graph:
            builder = self.builder
            inference = builder.cache.by_types.get((op, lhs.type, rhs.type))
            if inference is not None and self.trace_state.body is None:
                # The common case in line: two symbols whose types this op has met before. It takes
                # 1.2 us here, and 3.3 us through `apply`.
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
        """Add a symbol with a type and normal attributes that the calling pass supplies.

        The method infers nothing; the verifier checks both.
        """
        symbols = self.symbols
        record = AttributeRecord.of(attrs)
        symbol = Symbol(self, op, args, record, type, source, len(symbols))
        symbols.append(symbol)
        return symbol

    def infer(self, op: Op, args: Sequence[Symbol], attrs: Mapping[str, Any]) -> Inference:
        """Infer result type, operand dtypes and normal attributes of an op under the rules here."""
        return self.builder.infer(op, args, attrs)

    def kinds(self, symbols: Iterable[Symbol], structural: bool = False) -> Iterator[object]:
        """Yield a key for each symbol in turn; symbols with equal keys have equal inferred facts.

        The key is the symbol's stored inference result where it has one, because this takes a
        quarter of the time. Otherwise, or if `structural`, the key is the op, the attributes and
        the operand types.
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
