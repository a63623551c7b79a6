"""Where a result became wider than all inputs: the step that widens it, and the wide operand.

From an output, the search follows the operands that depend on the inputs, as long as they are wider
than all inputs. It ends at the step whose operands that depend on inputs are narrow: there, another
operand is wide, or the promotion of narrow operands is. A dtype that the program asked for, by a
cast or an argument, is no widening, and neither is the accumulator of a sum or an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from graphir.ir.inlining import Junction
from graphir.location import Location
from graphir.ops import dtype_rules as signatures
from graphir.ops.types import NoTensorType
from graphir.passes.analysis.expressions import default_dtype, expression
from graphir.public import DType, Graph, Symbol, ops

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.rows import CastRow


class Widening(NamedTuple):
    """The step at which an output became wider than all inputs, in an explicit graph.

    `position` is that of the wide operand; None if the operands are narrow and their promotion is
    wide. `maker` is the symbol that made the wide operand, or None. If a NumPy function made its
    argument wide by itself, `step` is the cast, and `argument` the wide argument, if there is one.
    """

    output: int
    step: Symbol
    position: int | None
    maker: Symbol | None
    argument: Symbol | None = None

    @property
    def dtype(self) -> DType:
        """The dtype of the step's result."""
        return self.step.dtype


def widenings(
    explicit: Graph, inputs: Sequence[Symbol], step_results: Sequence[Symbol] = ()
) -> Iterator[Widening]:
    """Yield the widening of each output that is wider than all `inputs`, each step once.

    `step_results` are further inputs of the graph that depend on `inputs`. In place of an input
    that the program only casts, as it loads it, its casts count.
    """
    if inputs:
        data = _as_loaded(explicit, inputs)
        search = _Search(explicit, data, step_results)
        yield from search.widenings()
        if len(data) != len(inputs) or any(x is not y for x, y in zip(data, inputs, strict=True)):
            yield from _Search(explicit, inputs, step_results).introductions(search)
    yield from _after_autocast(explicit)


def _as_loaded(explicit: Graph, inputs: Sequence[Symbol]) -> list[Symbol]:
    """Return the inputs, with the program's casts in place of those that it only casts."""
    casts: dict[int, list[Symbol]] = {x.index: [] for x in inputs}
    others = {x.index for x in explicit.outputs}
    for symbol in explicit.symbols:
        is_cast = symbol.op is ops.cast and not symbol.origins
        for arg in symbol.args:
            if arg.index in casts and is_cast:
                casts[arg.index].append(symbol)
            elif arg.index in casts:
                others.add(arg.index)
    return [
        symbol
        for x in inputs
        for symbol in (casts[x.index] if x.index not in others and casts[x.index] else (x,))
    ]


def _after_autocast(explicit: Graph) -> Iterator[Widening]:
    """Yield the steps that widen what autocast narrowed, by operands that no argument reaches.

    These are parameters and constants, which autocast casts only as operands of its list.
    """
    narrow = [
        x
        for x in explicit.symbols
        if any(origin.kind == "autocast" for origin in x.origins) and x.dtype.bits < 32
    ]
    if narrow:
        names = zip(explicit.input_names, explicit.inputs, strict=True)
        arguments = [x for name, x in names if name not in explicit.defaults]
        reached = _Search(explicit, arguments, ())
        for widening in _Search(explicit, narrow, ()).steps_beside_others():
            operand = widening.step.args[widening.position or 0]
            if not (reached.reaches(operand) or widening.step.location.compound):
                yield widening


_BY_DESIGN = (signatures.ACCUMULATION, signatures.POSITION, signatures.CAST)
"""The signatures of ops whose results are wide by themselves."""


class _Search:
    def __init__(
        self, explicit: Graph, inputs: Sequence[Symbol], step_results: Sequence[Symbol]
    ) -> None:
        self.explicit = explicit
        dtypes = [x.dtype for x in inputs if x.dtype.family != "bool"]
        self.floats = [x.part.precision for x in dtypes if x.is_inexact]
        self.bits = max((x.bits for x in dtypes), default=8)
        self.is_unsigned = bool(dtypes) and all(x.family == "uint" for x in dtypes)
        self._data = {x.index for x in (*inputs, *step_results)}
        for symbol in explicit.symbols:
            if any(arg.index in self._data for arg in symbol.args):
                self._data.add(symbol.index)

    def widenings(self) -> Iterator[Widening]:
        """Yield the widening of each output, each step once."""
        wide = ((i, x) for i, x in self._wide_outputs() if x.index in self._data)
        return _each_step(self._of(number, output) for number, output in wide)

    def _wide_outputs(self) -> Iterator[tuple[int, Symbol]]:
        return ((i, x) for i, x in enumerate(self.explicit.outputs) if self.is_wide(x.dtype))

    def is_wide(self, dtype: DType) -> bool:
        """Whether a dtype is wider than all inputs."""
        if dtype.is_inexact:
            return not self.floats or dtype.part.precision > max(self.floats)
        has_new_sign = self.is_unsigned and dtype.family == "int"
        return dtype.is_integer and not self.floats and (dtype.bits > self.bits or has_new_sign)

    def introductions(self, loaded: _Search) -> Iterator[Widening]:
        """Yield the steps that widen outputs beside casts of inputs to as wide a dtype.

        The outputs are those that are narrow for the search `loaded`, to which such casts count as
        inputs. A step counts if its wide operand depends on no input, or if the program left the
        width of its cast to the rules.
        """
        outputs = ((i, x) for i, x in self._wide_outputs() if not loaded.is_wide(x.dtype))
        return _each_step(self._introduction(number, output) for number, output in outputs)

    def steps_beside_others(self) -> Iterator[Widening]:
        """Yield the steps at which wide outputs meet an operand of no input, each step once."""
        steps = _each_step(self._introduction(*output) for output in self._wide_outputs())
        return (widening for widening in steps if widening.position is not None)

    def reaches(self, symbol: Symbol) -> bool:
        """Whether a symbol depends on the inputs."""
        return symbol.index in self._data

    def _introduction(self, number: int, output: Symbol) -> Widening | None:
        queue, visited = [output], {output.index}
        while queue:
            symbol = queue.pop(0)
            if symbol.index not in self._data or not symbol.args or in_call(symbol):
                continue
            positions = symbol.op.signature.promoted or range(len(symbol.args))
            operands = [uncast(symbol.args[i]) for i in positions]
            narrow = [x.index in self._data and not self.is_wide(x.dtype) for x in operands]
            if any(narrow) and has_default_dtype(symbol):
                return Widening(number, symbol, None, None)
            for i, operand in zip(positions, operands, strict=True):
                is_wide = self.is_wide(operand.dtype)
                if is_wide and operand.index not in self._data and any(narrow):
                    return Widening(number, symbol, i, made_elsewhere(symbol, operand))
                if is_wide and operand.index not in visited:
                    visited.add(operand.index)
                    queue.append(operand)
        return None

    def _of(self, number: int, output: Symbol) -> Widening | None:
        symbol, meeting = output, None
        while symbol.index in self._data and symbol.args:
            if in_call(symbol) and not self.is_wide(symbol.args[0].dtype):
                return self._of_call(number, symbol)
            positions = symbol.op.signature.promoted or range(len(symbol.args))
            operands = {i: uncast(symbol.args[i]) for i in positions}
            wide = [i for i, x in operands.items() if self.is_wide(x.dtype)]
            narrow = [
                x for x in operands.values() if x.index in self._data and not self.is_wide(x.dtype)
            ]
            following = [i for i in wide if operands[i].index in self._data]
            if wide and narrow and (self.floats or not symbol.dtype.is_float):
                meeting = Widening(
                    number, symbol, wide[0], made_elsewhere(symbol, operands[wide[0]])
                )
            if not following:
                promotes = narrow and not wide and self._promotes(symbol, narrow)
                return Widening(number, symbol, None, None) if promotes else meeting
            symbol = operands[following[0]]
        return meeting

    def _of_call(self, number: int, step: Symbol) -> Widening:
        """Return the widening by a cast that a NumPy function makes of its narrow argument."""
        place = step.location
        ops_of_call = {
            x.index
            for x in self.explicit.symbols
            if x.location == place and (x.location.compound or in_call(x))
        }
        arguments = (
            arg
            for i in sorted(ops_of_call)
            for arg in self.explicit.symbols[i].args
            if arg.index not in ops_of_call and self.is_wide(arg.dtype)
        )
        argument = next(arguments, None)
        maker = None if argument is None else made_elsewhere(step, argument)
        return Widening(number, step, None, maker, argument)

    def _promotes(self, symbol: Symbol, operands: Sequence[Symbol]) -> bool:
        """Whether an op makes a wide result of narrow operands, and not by design.

        A float of integers is by design, unless the inputs have floats or the op keeps integers.
        """
        if symbol.op.signature in _BY_DESIGN or symbol.attrs.get("dtype") is not None:
            return False
        integers = all(x.dtype.is_integer for x in operands)
        keeps = symbol.op.signature in (signatures.ARITHMETIC, signatures.JOIN)
        literals = any(x.op is ops.constant and x.attrs["literal"] is not None for x in symbol.args)
        return bool(self.floats) or (integers and keeps and not literals)


def _each_step(widenings: Iterable[Widening | None]) -> Iterator[Widening]:
    """Yield the first widening of each step."""
    steps: set[int] = set()
    for widening in widenings:
        if widening is not None and widening.step.index not in steps:
            steps.add(widening.step.index)
            yield widening


def uncast(symbol: Symbol) -> Symbol:
    """Return a symbol without the casts that passes inserted for operands.

    A cast that stores a value in an array, or that a NumPy function makes, is part of the program.
    An operand of control flow stands for the value that enters the graph.
    """
    while True:
        op = symbol.op
        is_inserted = op is ops.cast and symbol.origins and not symbol.origins[0].stores
        enters = type(op) is Junction and op.enters
        if not enters and (not is_inserted or in_call(symbol)):
            return symbol
        symbol = symbol.args[0]


def next_values(carry: Symbol) -> list[Symbol]:
    """Return what a loop's body gives for the junction of a carry; none for another symbol."""
    # The junction of a loop's result takes the value that the body gives, then the carry.
    junctions = (x for x in carry.graph.symbols if type(x.op) is Junction)
    return [x.args[0] for x in junctions if any(y is carry for y in x.args[1:2])]


def demanding(junction: Symbol, dtype: DType) -> Symbol | None:
    """Return the first op that makes a dtype to which a value enters or leaves control flow.

    That is the op in the body that widens a carry, or in the branch that widens a result. Returns
    None for other symbols.
    """
    if type(junction.op) is not Junction:
        return None
    candidates = list(junction.args[: len(junction.op.signature.promoted or ())])
    if junction.op.enters:
        candidates = next_values(junction)
    following = next((x for x in map(uncast, candidates) if x.dtype is dtype), None)
    symbol = following
    while following is not None:
        symbol = following
        if type(symbol.op) is Junction:
            inner = demanding(symbol, dtype)
            return symbol if inner is None else inner
        operands = (x for x in map(uncast, symbol.args) if x.dtype is dtype and x.args)
        following = next(operands, None)
    return symbol


def has_default_dtype(symbol: Symbol) -> bool:
    """Whether a cast is to `float` or `int`, whose width is a setting of the library."""
    rules = symbol.graph.rules_before or symbol.graph.rules.name
    if symbol.op is not ops.cast or symbol.origins or not rules.startswith("jax"):
        return False
    source = expression(symbol.location)
    return source is not None and default_dtype(source.text) is not None


def in_call(symbol: Symbol) -> bool:
    """Whether a symbol is a cast that a NumPy function makes by itself."""
    return symbol.op is ops.cast and any(origin.in_call for origin in symbol.origins)


def made_elsewhere(step: Symbol, operand: Symbol) -> Symbol | None:
    """Return the symbol that made an operand's values in another line than the step, or None."""
    while operand.op.kind == "movement" and operand.args:
        operand = uncast(operand.args[0])
    return operand if _line(operand.location) != _line(step.location) else None


def _line(location: Location) -> tuple[str, int]:
    return location.file, location.line


class InnerWidening(NamedTuple):
    """A cast that widens floats beyond its line, though perhaps no result is wider than all inputs.

    It is implicit: a narrow float meets a wide one that the program did not ask for there. The
    steps that follow compute in the wide dtype on other lines, until a cast narrows the values.

    `position` is None if both operands are narrow and their promotion is wide.
    """

    row: CastRow
    step: Symbol
    position: int | None
    following: int


def inner_widenings(view: Graph, rows: Iterable[CastRow]) -> list[InnerWidening]:
    """Return the inner widenings of an explicit graph, with inline bodies, longest first."""
    by_step: dict[int, CastRow] = {}
    for row in rows:
        if row.user is not None and _widens(row):
            by_step.setdefault(row.user.index, row)
    causes: dict[int, int] = {}  # by the index of a symbol, that of the step that widened it
    counts = dict.fromkeys(by_step, 0)
    for symbol in view.symbols if by_step else ():
        if isinstance(symbol.type, NoTensorType) or (symbol.op is ops.cast and not symbol.origins):
            continue
        alike = (x for x in symbol.args if x.index in causes and x.dtype is symbol.dtype)
        cause = next((causes[x.index] for x in alike), None)
        if cause is None and symbol.index in by_step:
            cause = symbol.index
        if cause is not None:
            causes[symbol.index] = cause
            if symbol.op.computes and _line(symbol.location) != _line(view.symbols[cause].location):
                counts[cause] += 1
    each = (_inner_widening(by_step[index], count) for index, count in counts.items() if count)
    return sorted(filter(None, each), key=attrgetter("following"), reverse=True)


def _inner_widening(row: CastRow, following: int) -> InnerWidening | None:
    """Return the inner widening of a cast; None where the wide dtype is asked for."""
    step = row.user
    assert step is not None
    positions = step.op.signature.promoted or range(len(step.args))
    dtypes = {i: uncast(step.args[i]).dtype for i in positions}
    wide = [i for i, dtype in dtypes.items() if dtype is row.target]
    if len(set(dtypes.values())) == 1 or any(_is_written(step.args[i]) for i in wide):
        return None
    return InnerWidening(row, step, wide[0] if wide else None, following)


def _widens(row: CastRow) -> bool:
    """Whether a row converts a float, as rules imply, to a dtype of more precision."""
    source, target = row.source, row.target
    floats = source.is_inexact and target.is_inexact and not source.weak
    implied = row.kind == "implicit" and row.rule != "explicit"
    return implied and floats and source.part.precision < target.part.precision


def _is_written(symbol: Symbol) -> bool:
    """Whether a value comes from a cast that the program asks for."""
    symbol = uncast(symbol)
    while symbol.op.kind == "movement" and symbol.args:
        symbol = uncast(symbol.args[0])
    return symbol.op is ops.cast
