"""Random programs, run by graphir and by a library, and where the two differ.

A program is data: arrays, and steps on what there is so far. `applied` runs a step on the symbols
of a graph and on the arrays of a library, with Python's operators and the functions of each; so the
dtype of every intermediate and the value of every result are compared, one step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol, ops, runtime
from graphir.conversions import convert
from tests.peers.steps import (
    IN_PLACE,
    LITERALS,
    MOVES,
    OPERATORS,
    OPS,
    REFUSALS,
    ROWS,
    SCALARS,
    SHAPES,
    UNARY,
    Program,
    Step,
    Value,
)
from tests.support.evaluator import same
from tests.support.strategies import pool, whole_bytes

Array: TypeAlias = np.ndarray[Any, Any]


def program(seed: int, library: Library, size: int = 10) -> Program:
    """A random program of a few inputs, and of up to `size` steps."""
    random = Random(seed)
    chosen = [random.choice(library.dtypes) for _ in range(3)]
    inputs = [(dtype, random.choice(library.shapes)) for dtype in chosen]
    return Program(
        tuple((d, _array(random, library.rules.concrete_dtype(d), shape)) for d, shape in inputs),
        tuple(_step(random, library) for _ in range(size)),
    )


def _array(random: Random, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Telling values, or any bits at all."""
    size = int(np.prod(shape, dtype=int))
    if whole_bytes(dtype) and not random.randrange(4):
        raw = random.randbytes(size * dtype.storage.itemsize)
        return np.frombuffer(raw, np.uint8).view(dtype.storage).reshape(shape)
    places = [random.randrange(2**16) for _ in range(size)]
    return pool(dtype).take(places, mode="wrap").reshape(shape)


def _step(random: Random, library: Library) -> Step:
    op = random.choice([op for op in OPS if _has(library, op)])
    x, y, z = (Value(random.randrange(64)) for _ in range(3))
    if op == "cast":
        return Step(op, (x,), random.choice([d for d in library.dtypes if not d.weak]))
    if op in ("concat", "stack"):
        return Step(op, (x, y, z)[: random.randrange(1, 4)])
    if op in UNARY:
        return Step(op, (x,))
    if op == "clip":
        bounds = [random.choice([y, z, random.choice(library.literals)]) for _ in range(2)]
        return Step(op, (x, *bounds))
    pair = [x, random.choice(library.literals) if random.randrange(2) else y]
    if op in IN_PLACE:
        return Step(op, tuple(pair))
    random.shuffle(pair)
    return Step(op, (z, *pair) if op == "where" else tuple(pair))


def _has(library: Library, op: str) -> bool:
    return op in library.operators or op in library.functions


# -- both sides


class Library(NamedTuple):
    """A library and the rule set that speaks for it."""

    rules: PromotionRules
    functions: Mapping[str, Callable[..., Any]]
    dtypes: Sequence[DType]
    make: Callable[[Array, DType], Any]
    read: Callable[[Any], Array] | None
    """The array of a result; None where a library only types programs."""
    dtype: Callable[[Any], DType | None]
    refusals: tuple[type[Exception], ...] = REFUSALS
    lacks: Callable[[Exception], bool] = lambda error: False
    settings: Callable[[], AbstractContextManager[Any]] = nullcontext
    literals: Sequence[Any] = (*LITERALS, *SCALARS)
    jit: Callable[[Any], Any] | None = None
    result: Callable[[Any], Any] = lambda x: x
    operators: Mapping[str, Callable[..., Any]] = OPERATORS
    shapes: Sequence[tuple[int, ...]] = SHAPES
    asks: Callable[[Case], bool] = lambda case: True
    """Whether a step is put to the library, which some kill."""


OURS: dict[str, Callable[..., Any]] = {**ops.CATALOGUE, "cast": lambda x, to: x.cast(to)}


def applied(
    step: Step,
    operands: Sequence[Any],
    functions: Mapping[str, Any],
    operators: Mapping[str, Callable[..., Any]] = OPERATORS,
) -> Any:
    """A step on symbols or arrays, and literals: what both sides run."""
    if step.op == "cast":
        return functions["cast"](operands[0], step.to)
    if step.op in operators:
        return operators[step.op](*operands)
    attrs = MOVES[step.op](tuple(operands[0].shape)) if step.op in MOVES else {}
    variadic = ops.CATALOGUE[step.op].variadic
    return functions[step.op](*([list(operands)] if variadic else operands), **attrs)


class Conversion(NamedTuple):
    """An operand as it is given, and as our op gets it."""

    before: Array
    after: Array
    source: DType
    target: DType


class Case:
    """A step as it was run, or an input: on both sides the dtype (None: refused) and the value.

    `conversions` are those of the operands, to the dtypes that our op demands.
    """

    def __init__(self, library: Library, step: Step, operands: Sequence[Any]) -> None:
        self.library, self.step, self.operands = library, step, tuple(operands)
        self.results: tuple[Any, Any] = (None, None)
        self.dtypes: tuple[DType | None, DType | None] = (None, None)
        self.values: tuple[Any, Any] = (None, None)
        self.conversions: list[Conversion] = []
        self.jitted = False

    @property
    def op(self) -> str:
        """The op, of an in-place operator the one that it computes."""
        return IN_PLACE.get(self.step.op, self.step.op)

    @property
    def given(self) -> tuple[Any, ...]:
        """The dtypes of the operands; a literal itself."""
        return tuple(x.dtypes[0] if isinstance(x, Case) else x for x in self.operands)

    @property
    def alike(self) -> bool:
        """Whether both sides have the same dtype, or neither any."""
        return self.dtypes[0] is self.dtypes[1]

    def ancestors(self) -> Iterator[Case]:
        """The step itself and all that it depends on."""
        yield self
        for operand in self.operands:
            if isinstance(operand, Case):
                yield from operand.ancestors()

    def compiled(self, array: Any) -> Case:
        """The same, with what a compiled program gave for it."""
        made = Case(self.library, self.step, self.operands)
        made.__dict__.update(self.__dict__)
        made.dtypes = self.dtypes[0], self.library.dtype(array)
        assert self.library.read
        made.values = self.values[0], self.library.read(array)
        made.jitted = True
        return made

    def __repr__(self) -> str:
        shown = [
            f"{x.dtypes[0]}{list(x.results[0].shape)}" if isinstance(x, Case) else repr(x)
            for x in self.operands
        ]
        to = f", to={self.step.to}" if self.step.to else ""
        answers = " | ".join(map(str, self.dtypes))
        return (
            f"{self.library.rules.base_name}: {self.step.op}({', '.join(shown)}{to}) -> {answers}"
        )


class Run:
    """A program on both sides: a case for each step that was taken or refused."""

    def __init__(self, program: Program, library: Library) -> None:
        self.library, self.graph = library, Graph("peer", rules=library.rules)
        self.known = [self._input(*one) for one in program.inputs]
        self.cases = [case for step in program.steps if (case := self._case(step))]
        if library.read:
            self._evaluate([array for _, array in program.inputs], library.read)

    def _input(self, dtype: DType, array: Array) -> Case:
        case = Case(self.library, Step("input", ()), ())
        case.results = self.graph.input(dtype, array.shape), self.library.make(array, dtype)
        case.dtypes, case.values = (dtype, dtype), (array, array)
        return case

    def _case(self, step: Step) -> Case | None:
        known = self.known
        operands = [
            known[x.place % len(known)] if isinstance(x, Value) else x for x in step.operands
        ]
        if step.op in (*ROWS, "concat") and not operands[0].results[0].rank:
            return None  # libraries take, refuse or reshape a tensor without rows
        if step.op in IN_PLACE and not operands[0].results[0].rank:
            return None  # of a scalar, a new object
        case, library = Case(self.library, step, operands), self.library
        if not library.asks(case):
            return None
        ours = _tried(case, 0, (OURS, OPERATORS), (GraphirError,))
        if library.read and case.op == "pow" and isinstance(ours, Symbol):
            value = self._computed_now(ours)
            ours = value if isinstance(value, Exception) else ours
        theirs = _tried(case, 1, (library.functions, library.operators), library.refusals)
        dtype = None
        if not isinstance(theirs, Exception):
            theirs = library.result(theirs)
            try:
                dtype = library.dtype(theirs)
            except library.refusals as error:  # of what is computed late
                theirs = error
        if isinstance(theirs, Exception) and library.lacks(theirs):
            return None
        case.results = ours, theirs
        case.dtypes = None if isinstance(ours, Exception) else ours.dtype, dtype
        if case.alike and case.dtypes[0] and step.op not in IN_PLACE:
            known.append(case)
        return case

    def settle(self, case: Case) -> None:
        """Fill in the value of the side that takes a step which the other refuses."""
        ours, theirs = case.values
        if case.dtypes[0] and ours is None:
            ours = self._computed_now(case.results[0])
        if case.dtypes[1] and theirs is None and self.library.read:
            theirs = self.library.read(case.results[1])
        case.values = ours, theirs

    def _computed_now(self, symbol: Symbol) -> Any:
        """The value, or the error of an op that may have no result for the values it is given."""
        inputs = [case.values[0] for case in self.known if case.op == "input"]
        outputs, self.graph.outputs = self.graph.outputs, (symbol,)
        try:
            return runtime.interpret(self.graph, *inputs)
        except GraphirError as error:
            return error
        finally:
            self.graph.outputs = outputs

    def _evaluate(self, inputs: Sequence[Array], read: Callable[[Any], Array]) -> None:
        """Fill in the values, ours by one run of the graph."""
        symbols = [case.results[0] for case in self.known]
        self.graph.output(*symbols)
        values = runtime.interpret(self.graph, *inputs)
        several = values if len(symbols) > 1 else (values,)
        found = {x.index: value for x, value in zip(symbols, several, strict=True)}
        for case in self.computed:
            symbol = case.results[0]
            case.values = found[symbol.index], read(case.results[1])
            case.conversions = self._conversions(symbol, found)

    def _conversions(self, symbol: Symbol, found: Mapping[int, Array]) -> list[Conversion]:
        committed, made = self.graph.concrete_dtype, []
        wanted = self.graph.infer(symbol.op, symbol.args, symbol.attrs).operands
        for arg, target in zip(symbol.args, wanted, strict=True):
            # a literal is not rounded before it is used
            source = committed(arg.dtype) if arg.index in found else arg.dtype
            before = found[arg.index] if arg.index in found else self._value(arg)
            to = committed(symbol.attrs.get("to", target))
            made.append(Conversion(before, convert(before, source, to), source, to))
        return made

    def _value(self, symbol: Symbol) -> Array:
        """The value of a constant, or of what an op of the library's makes on the way."""
        literal = symbol.op is ops.constant
        return symbol.attrs["value"] if literal else self._computed_now(symbol)

    @property
    def computed(self) -> list[Case]:
        """The steps that both sides took."""
        return [case for case in self.known if case.op != "input"]

    def jitted(self) -> Iterator[Case]:
        """The results that nothing uses, as they are when all is compiled at once."""
        used = {id(x) for case in self.known for x in case.operands}
        inputs = [case for case in self.known if case.op == "input"]
        leaves = [case for case in self.computed if id(case) not in used]

        def run(*arrays: Any) -> list[Any]:
            values = {id(case): array for case, array in zip(inputs, arrays, strict=True)}
            for case in self.computed:
                values[id(case)] = applied(
                    case.step, [values.get(id(x), x) for x in case.operands], self.library.functions
                )
            return [values[id(case)] for case in leaves]

        jit = self.library.jit
        assert jit
        for case, array in zip(leaves, jit(run)(*(x.results[1] for x in inputs)), strict=True):
            yield case.compiled(array)


def _tried(
    case: Case, side: int, names: tuple[Any, Any], refusals: tuple[type[Exception], ...]
) -> Any:
    operands = [x.results[side] if isinstance(x, Case) else x for x in case.operands]
    try:
        result = applied(case.step, operands, *names)
        return TypeError(f"no {case.op} of these") if result is NotImplemented else result
    except refusals as error:
        return error


Mask: TypeAlias = Callable[[Case], Any]
"""The elements of a result that may differ; of a refusal, whether one side may refuse."""


def differences(cases: Iterable[Case], expected: Mask) -> Iterator[Case]:
    """The steps whose dtypes or values differ where that was not expected.

    What comes of a value that differs may differ too.
    """
    tainted: set[int] = set()
    for case in cases:
        late = any(id(x) in tainted for x in case.operands)
        if not case.alike:
            if not late and not np.any(expected(case)):
                yield case
        elif case.values[0] is None or case.step.op in IN_PLACE:
            continue  # typed, not computed
        elif not same(*case.values):
            tainted.add(id(case))
            if not late and not _only(case, expected(case)):
                yield case


def _only(case: Case, expected: Any) -> bool:
    """Whether the values have one dtype and shape, and differ in the elements expected alone."""
    if case.values[0].shape != case.values[1].shape:
        return False
    return same(*(np.where(expected, np.zeros((), x.dtype), x) for x in case.values))
