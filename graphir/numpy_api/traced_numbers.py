"""Python numbers as arguments of a traced function: guards let a graph serve many calls.

A TracedNumber computes as Python does: ints are unbounded, `2 ** -1` is a float, `1 / 0` raises.
Beside an array it is a literal, with the dtype that the rule set gives this very value. There it
enters the graph as a 0-d input.

The trace records every fact that it learns about values as a question and an answer: the type of a
result, the outcome of a comparison, the dtype of a literal. A graph can depend on these answers
alone. A later call with other numbers asks the questions again, and runs the same graph if all
answers are equal. Where Python needs a value, as in `range(k)`, `x[:k]` or `math.sqrt(k)`, the
number supplies it, and the value becomes a question of its own.

A Computation is the question of a Python function of numbers. A NumberUse is the number and dtype
that a rule set gives a literal beside arrays. A Feed is an input of the graph.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.hints import Number
from graphir.ir.literals import DeferredNumber, literal_array
from graphir.ir.operands import is_computed, resolve_literal
from graphir.ir.symbol import Symbol, numpy_handlers
from graphir.numpy_api.ufuncs import BINARY, COMPARISONS, POW, UNARY
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import identity_key, misfit, number_text
from graphir.semantics.library_calls import Function

if TYPE_CHECKING:
    from graphir.ir.graph import Graph

_NUMBERS = frozenset((int, float, complex))
"""The result types that stay traced numbers; a bool result is an answer instead."""

Values: TypeAlias = list[Any]
"""The numbers of a call: first its arguments, then the results computed from them, in order."""


class Reference(NamedTuple):
    """A number in a question: its index among the values of a call."""

    at: int


class Computation(NamedTuple):
    """The question of a function of numbers.

    The answer is the type of a numeric result, which is appended to the values. If `plain`, the
    answer is the result itself, and the values stay. The answer can be the type of an exception.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    plain: bool
    cache_key: tuple[Any, ...]
    """The operands as `identity_key` keys; two questions with equal keys are the same question."""

    def key(self, values: Values) -> Hashable:
        """Return the answer, and append a numeric result to the values."""
        return self.result(values)[0]

    def answer(self, values: Values) -> Hashable:
        """Return the answer of `key` without a change of the values."""
        return self.result(list(values))[0]

    def result(self, values: Values) -> tuple[Any, Any]:
        """Return the answer and the result."""
        operands = [
            values[operand.at] if type(operand) is Reference else operand
            for operand in self.operands
        ]
        try:
            value = self.function(*operands)
        except Exception as error:  # an error of the program, which the program may catch
            return cast(Any, error).__class__, error
        kind: Any = cast("object", type(value))
        if kind in _NUMBERS and not self.plain:
            values.append(value)
            return kind, value
        return identity_key(value), value


class NumberUse(NamedTuple):
    """The question of the number and dtype that each literal operand of an op becomes.

    Operands are TensorTypes, References and literals. `is_result` says that an op
    computed the first operand, as in Place. `op` is None for a number that no op uses.
    """

    rules: PromotionRules
    op: Op | None
    operands: tuple[Any, ...]
    is_result: bool
    cache_key: tuple[Any, ...]

    def key(self, values: Values) -> Hashable:
        """Return the cells of the numbers, or None if only their types count."""
        rules, name = self.rules, self.op.name if self.op else ""
        cells = [
            rules.cell(values[operand.at], name)
            for operand in self.operands
            if type(operand) is Reference
        ]
        if len(cells) == 1:
            return cells[0]
        return tuple(cells) if any(cell is not None for cell in cells) else None

    def answer(self, values: Values) -> Hashable:
        """Return each literal's dtype and number; for a traced number, whether its value stays."""
        try:
            literals = self.resolve(values)
        except Exception as error:
            return type(error)
        answers: list[Any] = []
        for operand, literal in zip(self.operands, literals, strict=True):
            if literal is None:
                continue
            number, dtype = literal
            is_traced = type(operand) is Reference
            key = is_same(number, values[operand.at]) if is_traced else identity_key(number)
            answers.append((dtype, key))
        return tuple(answers)

    def resolve(self, values: Values) -> list[tuple[Any, DType] | None]:
        """Return the number and dtype of each literal, and None for each symbol.

        The method raises GraphirError if the rules refuse a literal.
        """
        operands = [
            values[operand.at] if type(operand) is Reference else operand
            for operand in self.operands
        ]
        literals: list[tuple[Any, DType] | None] = []
        for place, operand in enumerate(operands):
            if type(operand) is TensorType:
                literals.append(None)
                continue
            number, dtype = resolve_literal(self.rules, self.op, operands, place, self.is_result)
            literal_array(number, dtype, self.rules)  # raises if the number does not fit the dtype
            literals.append((number, dtype))
        return literals


Question: TypeAlias = Computation | NumberUse
"""A question of a trace about the numbers of its call.

Calls with equal `key` give equal answers. `answer` is the answer, valid after a call of `key`.
Questions with equal `cache_key` are the same question.
"""


def is_same(number: Number, value: Number) -> bool:
    """Whether a literal's number is the literal's own value."""
    return number is value or identity_key(number) == identity_key(value)


class Feed(NamedTuple):
    """A graph input that a number feeds: the number's index among the values, and a dtype.

    `use` and `place` belong to a literal that an op takes as another number. `use` is None for
    other literals.
    """

    at: int
    dtype: DType
    rules: PromotionRules
    use: NumberUse | None = None
    place: int = 0

    def storage(self, graph: Graph) -> np.dtype[Any] | None:
        """Return the dtype if np.array(number, dtype) is the input's value, else None."""
        plain = self.use is None and self.dtype.weak
        return graph.concrete_dtype(self.dtype).storage if plain else None

    def array(self, values: Values) -> NDArray[Any]:
        """Return the 0-d array of the input in a call."""
        number: Any = values[self.at]
        if self.use is not None:
            literal = self.use.resolve(values)[self.place]
            number = literal[0] if literal else number
        return literal_array(number, self.dtype, self.rules)[1]


class NumberTrace:
    """The numbers of a function during its trace, and the questions about them."""

    def __init__(self, graph: Graph) -> None:
        self.graph: Graph | None = graph
        self.values: Values = []
        self.names: list[str] = []
        self.questions: list[tuple[Question, Hashable, Hashable]] = []
        self.feeds: dict[Feed, Symbol] = {}
        self._results: dict[Any, Any] = {}

    def argument(self, value: complex, name: str) -> TracedNumber:
        """Return the traced number of an argument; arguments precede all computed numbers."""
        return self._number(value, name)

    def _number(self, value: complex, name: str) -> TracedNumber:
        if len(self.names) == len(self.values):
            self.values.append(value)
        self.names.append(name)
        return TracedNumber(self, len(self.names) - 1)

    def call(self, function: Callable[..., Any], *operands: Any, plain: bool = False) -> Any:
        """Return a function's result on numbers: a traced number, or the plain value if `plain`.

        The call is recorded as a question. An exception of the function is recorded too, and
        raised.
        """
        self.open_graph()
        references = tuple(
            Reference(operand.index) if type(operand) is TracedNumber else operand
            for operand in operands
        )
        key = function, plain, tuple(map(_cache_key, references))
        if key in self._results:
            return self._results[key]
        question = Computation(function, references, plain, key)
        answer, result = question.result(self.values)
        self.questions.append((question, answer, answer))
        if isinstance(answer, type) and issubclass(answer, BaseException):
            raise result
        if len(self.names) < len(self.values):
            names = [self.names[operand.at] for operand in references if type(operand) is Reference]
            result = self._number(result, "_".join([function.__name__.strip("_"), *names])[:40])
        self._results[key] = result
        return result

    def ask(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return the plain result of a function.

        With traced numbers the result becomes a question.
        """
        if any(type(operand) is TracedNumber for operand in operands):
            return self.call(function, *operands, plain=True)
        return function(*operands)

    def entered(self, op: Op | None, operands: Sequence[Any]) -> tuple[Symbol, ...]:
        """Return an op's operands as symbols: numbers become inputs, other literals constants."""
        graph = self.open_graph()
        references = tuple(
            operand.type if isinstance(operand, Symbol)
            else Reference(operand.index) if type(operand) is TracedNumber
            else operand
            for operand in operands
        )  # fmt: skip
        is_result = is_computed(operands)
        cache_key = op, is_result, *map(_cache_key, references)
        use = NumberUse(graph.rules, op, references, is_result, cache_key)
        if use.cache_key not in self._results:
            key, answer = use.key(self.values), use.answer(self.values)
            if key is not None:
                self.questions.append((use, key, answer))
        self._results[use.cache_key] = None
        literals = use.resolve(self.values)
        symbols: list[Symbol] = []
        for place, (operand, literal) in enumerate(zip(operands, literals, strict=True)):
            if literal is None:
                symbols.append(operand)
            elif type(operand) is TracedNumber:
                same = is_same(literal[0], self.values[operand.index])
                where = (None, 0) if same else (use, place)
                symbols.append(
                    self._feed_input(Feed(operand.index, literal[1], graph.rules, *where))
                )
            else:
                array = literal_array(*literal, graph.rules, graph.tf32)
                symbols.append(graph.constant_of(array, operand))
        return tuple(symbols)

    def _feed_input(self, feed: Feed) -> Symbol:
        """Return the graph input of a feed, which all its uses share."""
        symbol = self.feeds.get(feed)
        if symbol is None:
            graph = self.open_graph()
            name = "".join(c if c.isalnum() else "_" for c in self.names[feed.at])
            while name in graph.input_names or not name.isidentifier():
                name += "_" if name.isidentifier() else "x"
            symbol = self.feeds[feed] = graph.input(TensorType(feed.dtype), name=name)
        return symbol

    def filled(self, number: TracedNumber, dtype: DType) -> Symbol:
        """Return a number as a symbol of a dtype.

        Raise GraphError if the dtype does not hold it.
        """
        graph = self.open_graph()
        if not self.ask(graph.rules.fits, number, dtype):
            raise misfit(self.values[number.index], dtype)
        return self._feed_input(Feed(number.index, dtype, graph.rules))

    def concrete_attrs(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of an op with plain values for traced numbers."""
        return {name: concrete(value) for name, value in attrs.items()}

    def place(self, key: Any) -> Any:
        """Return the key of an index; a single number stays symbolic, for a lookup at run time."""
        return key.symbol() if type(key) is TracedNumber else concrete(key)

    def fed(self, numbers: Sequence[Any]) -> list[NDArray[Any]]:
        """Return the graph's inputs for the numbers of another call.

        The method raises GraphError if an answer differs, since the numbers then lead to another
        graph.
        """
        values = list(numbers)
        for question, key, answer in self.questions:
            if question.key(values) != key and question.answer(values) != answer:
                texts = ", ".join(map(number_text, numbers))
                raise GraphError(
                    f"with the numbers {texts} the function makes another graph",
                    fix="trace it again with these numbers",
                )
        return [feed.array(values) for feed in self.feeds]

    def close(self) -> None:
        """End the trace; its numbers are invalid from now on."""
        if self.graph is not None:
            self.graph.trace_state.numbers = None
        self.graph = None

    def open_graph(self) -> Graph:
        """Return the graph under construction; raise GraphError after the end of the trace."""
        if self.graph is None:
            raise GraphError(
                "a number of a traced call is used after the trace ended",
                fix="return it from the function instead of keeping it",
            )
        return self.graph


def _cache_key(operand: Any) -> Any:
    if type(operand) in (Reference, TensorType, DType):
        return operand
    return identity_key(operand)


def concrete(value: Any) -> Any:
    """Return a value with Python numbers for traced ones, also within tuples, lists and slices."""
    kind: Any = cast("object", type(value))
    if kind is TracedNumber:
        return value.trace.call(_itself, value, plain=True)
    if kind is tuple or kind is list:
        return cast(Any, kind)([concrete(item) for item in cast("Sequence[Any]", value)])
    if kind is slice:
        return slice(concrete(value.start), concrete(value.stop), concrete(value.step))
    return value


def _itself(value: Any) -> Any:
    return value


_BUILTIN_POW: Any = pow


def _modulo_power(base: int, exponent: int, modulus: int) -> Any:
    return _BUILTIN_POW(base, exponent, modulus)


def _conjugate(value: complex) -> Any:
    return value.conjugate()


def _real(value: complex) -> Any:
    return value.real


def _imaginary(value: complex) -> Any:
    return value.imag


def _operand(value: Any) -> Any:
    """Return a number beside a traced one; an instance of an int subclass becomes a plain int.

    Other values give NotImplemented, so that the operators of NumPy's scalars, symbols and similar
    values decide.
    """
    if type(value) is TracedNumber or type(value) in _PLAIN:
        return value
    if isinstance(value, int):
        return int(value)
    return NotImplemented


def _binary(function: Callable[[Any, Any], Any]) -> Any:
    def operate(self: TracedNumber, other: complex | TracedNumber) -> Any:
        other = _operand(other)
        return other if other is NotImplemented else self.trace.call(function, self, other)

    return operate


def _reflect(function: Callable[[Any, Any], Any]) -> Any:
    def operate(self: TracedNumber, other: complex | TracedNumber) -> Any:
        other = _operand(other)
        return other if other is NotImplemented else self.trace.call(function, other, self)

    return operate


def _unary(function: Callable[..., Any], plain: bool = False) -> Any:
    def operate(self: TracedNumber) -> Any:
        return self.trace.call(function, self, plain=plain)

    return operate


_PLAIN = frozenset((bool, int, float, complex))


class TracedNumber(DeferredNumber):
    """A Python number of a call during its trace; `isinstance(k, int)` holds for an int.

    Arithmetic gives traced numbers. Comparisons, `bool`, `int`, `float`, `index`, `hash` and text
    give plain Python values, which the trace records.
    """

    __slots__ = ("index", "trace")

    def __init__(self, trace: NumberTrace, index: int) -> None:
        self.trace = trace
        self.index = index

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        kind: Any = cast("object", type(self.trace.values[self.index]))
        return kind

    __floor__, __ceil__ = _unary(math.floor), _unary(math.ceil)
    __trunc__ = _unary(math.trunc)

    __bool__ = _unary(operator.truth)
    __hash__, __index__ = _unary(hash, plain=True), _unary(operator.index, plain=True)
    __int__, __float__ = _unary(int, plain=True), _unary(float, plain=True)
    __complex__ = _unary(complex, plain=True)
    __str__ = _unary(str, plain=True)

    def __repr__(self) -> str:
        if self.trace.graph is None:
            return f"<number {self.trace.names[self.index]!r} of a trace that ended>"
        return self.trace.call(repr, self, plain=True)

    def __format__(self, how: str) -> str:
        return self.trace.call(format, self, how, plain=True)

    def __pow__(
        self, exponent: complex | TracedNumber, modulus: int | TracedNumber | None = None
    ) -> Any:
        if modulus is not None:
            return self.trace.call(_modulo_power, self, exponent, modulus)
        return _POWER(self, exponent)

    def __divmod__(self, other: complex | TracedNumber) -> Any:
        number: Any = self
        return number // other, number % other

    def __rdivmod__(self, other: complex | TracedNumber) -> Any:
        number: Any = self
        return other // number, other % number

    def __round__(self, digits: SupportsIndex | None = None) -> Any:
        return self.trace.call(round, self, digits)

    def conjugate(self) -> Any:
        """Return the complex conjugate, a traced number."""
        return self.trace.call(_conjugate, self)

    @property
    def real(self) -> Any:
        """The real part, a traced number."""
        return self.trace.call(_real, self)

    @property
    def imag(self) -> Any:
        """The imaginary part, a traced number."""
        return self.trace.call(_imaginary, self)

    def __getattr__(self, name: str) -> Any:
        kind: Any = cast("object", type(self.trace.values[self.index]))
        if name.startswith("__") or not hasattr(kind, name):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        return getattr(concrete(self), name)

    def __copy__(self) -> TracedNumber:
        return self  # immutable

    def __deepcopy__(self, _: dict[int, Any]) -> TracedNumber:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (concrete(self),)

    # -- NumPy's functions

    def symbol(self) -> Symbol:
        """Return the 0-d array that NumPy makes of the number, in the number's default dtype."""
        (entered_symbol,) = self.trace.entered(None, (self,))
        if not entered_symbol.weak:
            return entered_symbol
        return entered_symbol.cast(entered_symbol.graph.concrete_dtype(entered_symbol.dtype))

    def filled(self, dtype: DType) -> Symbol:
        """Return the number as a symbol of a dtype.

        Raise GraphError if the dtype does not hold it.
        """
        return self.trace.filled(self, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_handlers.ufunc(self.trace.open_graph(), ufunc, method, inputs, kwargs)

    def __array_function__(
        self,
        function: Function,
        _: Collection[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call NumPy on the plain values of numbers alone; beside symbols, add ops."""
        if function in (np.ndim, np.shape, np.size):
            return function(0, *args[1:], **kwargs)
        if _has_symbol(args) or _has_symbol(tuple(kwargs.values())):
            return numpy_handlers.function(self.trace.open_graph(), function, args, kwargs)
        return function(*concrete(tuple(args)), **{k: concrete(v) for k, v in kwargs.items()})

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if dtype is not None:
            return np.array(concrete(self), dtype)
        kind, name = type(self.trace.values[self.index]).__name__, self.trace.names[self.index]
        raise GraphError(
            "an array does not keep the kind of a number that differs between calls",
            op="np.asarray",
            got=f"{name!r}, {('an' if kind == 'int' else 'a')} {kind}",
            fix=f"use {kind}({name}), by which its value becomes part of the signature",
        )


for _name, (_function, _) in (BINARY | COMPARISONS).items():
    if _name not in ("divmod", "pow", "matmul"):
        setattr(TracedNumber, f"__{_name}__", _binary(_function))
for _name, (_function, _) in BINARY.items():
    if _name not in ("divmod", "matmul"):
        setattr(TracedNumber, f"__r{_name}__", _reflect(_function))
for _name, (_function, _) in UNARY.items():
    setattr(TracedNumber, f"__{_name}__", _unary(_function))
_POWER = _binary(POW)


def _has_symbol(values: Any) -> bool:
    return any(
        isinstance(value, Symbol) or (isinstance(value, (tuple, list)) and _has_symbol(value))
        for value in values
    )
