"""Notes on the exceptions of programs: why a program raised.

The values that the lines of an exception name have symbols in the graph that was recorded so far.
The note says since which line each has its dtype, and which step behind them wrapped, overflowed or
lost their values. Where the graph does not know a value, the source does (see user_code).
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple, cast

from graphir.display import printable
from graphir.errors import GraphirError
from graphir.location import Location, is_internal
from graphir.ops.types import NoTensorType
from graphir.passes.analysis.casts import CastReport
from graphir.passes.analysis.explanations.causes import LossCause
from graphir.passes.analysis.explanations.entries import births_of
from graphir.passes.analysis.expressions import expression, named_dtype, statement
from graphir.promotion.scalars import number_text
from graphir.public import Graph, Symbol, ops
from graphir.runtime.user_code import INSTALLED, LONGEST, MakingLine, NamedValue, Scope, has_line


class ProgramValues:
    """What a library's recording knows of the values of a program; this one knows nothing."""

    def is_traced(self, value: Any) -> bool:
        """Whether a value has a symbol."""
        return False

    def symbols(self, values: Sequence[Any]) -> Sequence[Symbol]:
        """Return the symbols of traced values, all of one graph."""
        return ()

    def is_given(self, symbol: Symbol) -> bool:
        """Whether a symbol is a value that the program has from outside, such as an argument."""
        return symbol.op is ops.input

    def made(self, symbol: Symbol) -> MakingLine | None:
        """Return the line that made a value from outside, such as a parameter; None if unknown."""
        return None

    def argument(self, symbol: Symbol) -> str:
        """Return the name of an argument of the program; "" if it has none."""
        graph = symbol.graph
        names = zip(graph.inputs, graph.input_names, strict=True)
        return next((name for x, name in names if x is symbol), "")

    def name(self, value: Any) -> str:
        """Return the name that the program has for a traced value, such as that of a parameter."""
        return ""

    def results(self, frame: FrameType) -> Iterable[tuple[str, Any]]:
        """Yield traced values that a library's function compares, with their names."""
        return ()

    def losses(
        self,
        values: Mapping[str, Any],
        conditions: Sequence[Location],
        frames: Sequence[FrameType],
    ) -> Sequence[str]:
        """Return sentences about traced values by name: which step behind them lost values.

        They are about the values of conditions too, by which the program came to a line, and about
        what the call of a library in `frames` would do with exact values.
        """
        return ()


@contextmanager
def noting_errors(program: ProgramValues) -> Generator[None]:
    """Context manager: an exception gets a note about the dtypes and values behind its line.

    The exception stays the program's. It has no note if it is not about dtypes, and no value that
    its line names was lost; neither has a refusal of the project that is no TypeError.
    """
    try:
        yield
    except Exception as error:
        note_error(error, program)
        raise


def note_error(error: Exception, program: ProgramValues, seen: BaseException | None = None) -> None:
    """Add the note to an exception; `seen` is the same exception with all its frames."""
    if isinstance(error, GraphirError) and not isinstance(error, TypeError):
        return
    with suppress(Exception):  # what the program's objects answer may not hide its error
        note = note_of(seen or error, program)
        if note and note not in getattr(error, "__notes__", ()):
            error.add_note(note)


_ABOUT_DTYPES = re.compile(r"type|overflow|cast|convert|Half|[Ff]loat|Double|int\d")


def is_about_dtypes(error: BaseException) -> bool:
    """Whether an exception is about dtypes, by its name or its text."""
    return bool(_ABOUT_DTYPES.search(f"{type(error).__name__} {error}"))


MOST_FRAMES = 5
"""The most calls of the user's code that a note describes."""
MOST_VALUES = 12
"""The most values of a call of a library that a note looks at."""


def note_of(error: BaseException, program: ProgramValues) -> str:
    """Return what the lines of the user that raised an error say of it, the innermost first.

    Arrays have their dtype and shape, and the line since which they have the dtype. Returns "" if
    no line is the user's, or nothing of dtypes or of lost values is behind it.
    """
    lines = _user_lines(error, program)[:MOST_FRAMES]
    lines = [x for x in lines if any(map(described, (y.value for y in x.operands)))] or lines[:1]
    values = {id(x.value): x.value for line in lines for x in line.operands}
    traced = {key: value for key, value in values.items() if program.is_traced(value)}
    symbols = dict(zip(traced, program.symbols([*traced.values()]), strict=True))
    history = DtypeHistory(program, symbols)
    texts: list[str] = []
    if is_about_dtypes(error):
        texts = [line.text(history) for line in lines]
        texts += _ways_out(error, lines)
    conditions = [place for line in lines for place in line.conditions]
    for line in lines:
        sources = {x.text: x.value for x in line.sources if program.is_traced(x.value)}
        if sources:
            where = "" if texts else f"line {line.place.line}: {line.brief}: "
            losses = program.losses(sources, conditions, line.inner)
            texts += [f"values: {where}{sentence}" for sentence in losses]
            break
    return "\n".join(filter(None, texts))


MOST_AUDITED = 20_000
"""The most steps behind a line that raised an error which are audited."""
GRAVE = 0.1
"""The least error of a value, of its size, that may make a program raise."""


def grave_losses(report: CastReport, names: Sequence[str]) -> list[str]:
    """Return the sentences of an audit about large errors; `names` are those of the outputs."""
    texts: list[str] = []
    for sentence in report.answers:
        cause = sentence.cause
        if isinstance(cause, LossCause) and cause.outputs and cause.before >= GRAVE:
            number = cause.outputs[0]
            start = "the result" if len(names) == 1 else report.output_name(number)
            texts.append(f"{names[number]}{str(sentence).removeprefix(printable(start))}")
    return texts


class SymbolValues(ProgramValues):
    """The values of a trace, which are symbols themselves."""

    def is_traced(self, value: Any) -> bool:
        """Whether a value is a symbol."""
        return isinstance(value, Symbol)

    def symbols(self, values: Sequence[Any]) -> Sequence[Symbol]:
        """Return the values."""
        return values


class DtypeHistory:
    """Since which lines values have their dtypes: `symbols` are those of values by their ids."""

    def __init__(self, program: ProgramValues, symbols: Mapping[int, Symbol]) -> None:
        self._program, self._symbols = program, symbols
        graph = next((x.graph for x in symbols.values()), Graph())
        self._births = births_of(graph)

    def since(self, value: NamedValue, place: Location) -> str:
        """Return ` since line 7: text`, for the line where a value's dtype is born, or was made.

        If the dtype is older than the step at which it meets another one, both are named.
        """
        texts = self._texts(value, place)
        if not texts:
            return ""
        older = f" (the dtype of {' and of '.join(texts[1:])})" if texts[1:] else ""
        return f" since {texts[0]}{older}{self._promoted(value, place)}"

    def _promoted(self, value: NamedValue, place: Location) -> str:
        """Return the dtypes that made that of a value by promotion, each with its line; or ""."""
        symbol = self._symbols.get(id(value.value))
        birth = None if symbol is None else self._births.of(symbol)
        operands = (
            [] if birth is None else [x for x in birth.args if not isinstance(x.type, NoTensorType)]
        )
        dtypes = {x.dtype for x in operands}
        if birth is None or len(dtypes) < 2 or birth.dtype in dtypes:
            return ""
        lines = {x.dtype: self._line(self._births.of(x)) for x in operands}
        texts = [f"{x} since {line.seen_from(place)}" for x, line in lines.items() if line]
        return f" (of {' and '.join(texts)})" if texts else ""

    def made(self, value: NamedValue, place: Location) -> str:
        """Return `, made in line 7: text`, for a value that a line other than a place computes."""
        symbol = self._symbols.get(id(value.value))
        line = None if symbol is None else self._line(symbol)
        if line is None or (line.file, line.line) == place.place[:2]:
            return ""
        return f", made in {line.seen_from(place)}"

    def _texts(self, value: NamedValue, place: Location) -> list[str]:
        """Return the lines at which a value got its dtype, from the last one to the birth."""
        assigned = [] if value.made is None else [value.made.seen_from(place)]
        symbol = self._symbols.get(id(value.value))
        if symbol is None:
            return assigned
        birth = self._births.of(symbol)
        steps = dict.fromkeys((self._births.entry(symbol), self._births.conversion(symbol), birth))
        lines = [x for x in map(self._line, steps) if x is not None]
        other = {(x.file, x.line): x for x in lines if (x.file, x.line) != place.place[:2]}
        texts = [x.seen_from(place) for x in other.values()] or assigned
        if birth is not symbol and self._program.is_given(birth) and self._line(birth) is None:
            name = self._program.argument(birth)
            texts += [f"the argument {printable(name)}"] if name and texts else []
        return texts

    def _line(self, step: Symbol) -> MakingLine | None:
        if self._program.is_given(step):
            return self._program.made(step)
        source, place = expression(step.location), step.location
        if source is None:
            return None
        name = named_dtype(place, step.dtype)
        text = f"{source.brief}, {name}" if name else source.brief
        return MakingLine(place.file, place.line, text)


class RaisingLine(NamedTuple):
    """A line of the user's on the way of an exception, with the values that it names.

    `sources` are these, the values that a condition above a `raise` names, and those from which
    the program made its plain numbers. `conditions` are all around the line, `inner` the
    frames of libraries that it called.
    """

    place: Location
    brief: str
    operands: Sequence[NamedValue]
    sources: Sequence[NamedValue]
    conditions: Sequence[Location]
    inner: Sequence[FrameType]

    def text(self, history: DtypeHistory) -> str:
        """Return the line, and the dtype of each value with the line since which it has that."""
        texts: list[str] = []
        for operand in self.operands:
            what, since = described(operand.value), history.since(operand, self.place)
            if not since and operand.text not in self.brief:
                since = history.made(operand, self.place)
                what = since and what
            if what:
                texts.append(f"{operand.text} is {what}{since}")
        head = f"line {self.place.line}: {printable(self.brief, LONGEST)}"
        return f"{head}: {'; '.join(dict.fromkeys(texts))}" if texts else head


def described(value: Any) -> str:
    """Return the dtype and shape of an array, and a number itself; "" for another value."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and isinstance(shape, tuple):
        sizes = ", ".join(str(x) for x in cast("tuple[Any, ...]", shape))
        return f"{str(dtype).removeprefix('torch.')}[{sizes}]"
    is_number = isinstance(value, (int, float, complex)) and not isinstance(value, bool)
    return number_text(value) if is_number else ""


def _ways_out(error: BaseException, lines: Sequence[RaisingLine]) -> Iterator[str]:
    """Yield the ways out of NumPy's refusal to store the result of a ufunc in an array."""
    ufunc, to = getattr(error, "ufunc", None), getattr(error, "to", None)
    if not lines or ufunc is None or to is None or type(error).__name__ != _REFUSED_STORE:
        return
    line, dtype = lines[0], getattr(error, "from_", None)
    target = _target(line.brief)
    yield (
        f"either make {target or 'the array'} {dtype} where it is made, or write "
        f'casting="unsafe" in np.{ufunc.__name__}(..., out={target or "..."}), which cuts values '
        f"to {to}"
    )


_REFUSED_STORE = "UFuncTypeError"


def _target(text: str) -> str:
    """Return the text of the array that an expression writes to; "" if it writes to none."""
    match statement(text):
        case ast.AugAssign(target=node):
            return ast.unparse(node)
        case ast.Expr(ast.Call(keywords=keywords)):
            return next((ast.unparse(x.value) for x in keywords if x.arg == "out"), "")
        case _:
            return ""


# -- the lines and the values that they name


def _user_lines(error: BaseException, program: ProgramValues) -> list[RaisingLine]:
    """Return the lines of the user on the way of an error, the innermost first."""
    lines: list[RaisingLine] = []
    inner: list[FrameType] = []
    traceback, frames = error.__traceback__, list[tuple[FrameType, int]]()
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    for frame, offset in reversed(frames):
        if frame.f_code.co_filename.startswith(INSTALLED) or is_internal(frame):
            inner.insert(0, frame)
            continue
        line = _line_of(frame, Location(frame.f_code, offset), inner, program)
        if line is not None:
            lines.append(line)
        inner = []
    return lines


def _line_of(
    frame: FrameType, place: Location, inner: Sequence[FrameType], program: ProgramValues
) -> RaisingLine | None:
    """Return the line that a frame runs; `inner` are the frames of libraries that it called."""
    source = expression(place)
    node = None if source is None else statement(source.text)
    if source is None or node is None:
        return None
    scope = Scope(place, {**frame.f_globals, **frame.f_locals})
    named = list(scope.named(node))
    beside = [x for test in _conditions(scope, place) for x in scope.named(test)]
    unnamed = _values_of_call(inner, {id(x.value) for x in named}, program)
    texts = [ast.unparse(x) for x in _computed_operands(node, scope)]
    temporary = [i for i, (_, value) in enumerate(unnamed) if not program.name(value)]
    if len(texts) == len(temporary):
        for i, text in zip(temporary, texts, strict=True):
            unnamed[i] = text, unnamed[i][1]
    named += [NamedValue(name, value) for name, value in unnamed]
    plain = [x for x in (*named, *beside) if type(x.value) in (int, float, complex)]
    sources = [*named, *beside, *(y for x in plain for y in scope.behind(x.text))]
    return RaisingLine(place, source.brief, named, sources, scope.conditions(), inner)


def _values_of_call(
    inner: Sequence[FrameType], named: set[int], program: ProgramValues
) -> list[tuple[str, Any]]:
    """Return the traced values that a call of a library got, but for those that the line names.

    They are the arguments of the frame that has most of them, the outermost of several, and the
    variables of the innermost one.
    """
    calls = [_traced(_arguments(frame), program) for frame in inner]
    values = max(calls, key=len) if calls else {}
    values |= _traced(inner[-1].f_locals, program) if inner else {}
    unnamed = [
        (program.name(x) or name, x) for key, (name, x) in values.items() if key not in named
    ]
    return [*unnamed[:MOST_VALUES], *(x for frame in inner for x in program.results(frame))]


def _traced(values: Mapping[str, Any], program: ProgramValues) -> dict[int, tuple[str, Any]]:
    """Return the traced values among others, with their names, by their ids."""
    leaves = leaves_of(dict(values))  # of 3.13 on, f_locals are no dict
    return {id(value): (name, value) for name, value in leaves if program.is_traced(value)}


def _arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    flags = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
    count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & x) for x in flags)
    names = code.co_varnames[:count]
    return {name: frame.f_locals[name] for name in names if name in frame.f_locals}


def leaves_of(value: Any, name: str = "", depth: int = 3) -> Iterator[tuple[str, Any]]:
    """Yield the values in lists, tuples and dicts with the texts that name them."""
    if isinstance(value, (list, tuple, dict)) and depth:
        keys = isinstance(value, dict)
        items = cast("Any", value).items() if keys else enumerate(cast("Any", value))
        for key, part in islice(items, MOST_VALUES if name else None):
            yield from leaves_of(part, f"{name}[{key!r}]" if name else str(key), depth - 1)
    else:
        yield name, value


def _computed_operands(node: ast.stmt, scope: Scope) -> list[ast.expr]:
    """Return the operands of a statement that it computes, which no name holds."""
    match node:
        case (
            ast.AugAssign(target=left, value=right)
            | ast.Expr(ast.BinOp(left=left, right=right))
            | ast.Expr(ast.Subscript(value=left, slice=right))
        ):
            operands = [left, right]
        case ast.Expr(ast.Call(func=func, args=args, keywords=keywords)):
            operands = [*args, *(x.value for x in keywords)]
            operands = [func.value, *operands] if isinstance(func, ast.Attribute) else operands
        case _:
            return []
    known = (scope.value(x)[0] or isinstance(x, (ast.Constant, ast.Slice)) for x in operands)
    return [x for x, is_known in zip(operands, known, strict=True) if not is_known]


def _conditions(scope: Scope, place: Location) -> list[ast.expr]:
    """Return the conditions by which a `raise` or an `assert` at a place runs."""
    tests: list[ast.expr] = []
    for node in scope.statements():
        branches = (*node.body, *node.orelse) if isinstance(node, ast.If) else ()
        raising = [x for x in branches if isinstance(x, ast.Raise) and has_line(x, place.line)]
        if raising or (isinstance(node, ast.Assert) and has_line(node, place.line)):
            tests.append(cast("ast.Assert", node).test)
    return tests
