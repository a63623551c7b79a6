"""Control flow of JAX: its rows, and types that are no fixpoint of a loop or jitted function.

A value is weak when a Python number starts it, and strong after it met an array. If the value
enters the same jitted function before and after, JAX traces and compiles the function twice; if it
is the carry of a loop, JAX may refuse the loop. Both are reported with the op that changes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from inspect import signature
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any, NamedTuple

from graphir.display import printable
from graphir.passes import cast_report
from graphir.passes.analysis.explanations.entries import births_of
from graphir.passes.analysis.expressions import expression, statement
from graphir.public import DType, Graph, GraphError, Location, Symbol, TensorType, ops
from graphir.runtime.sources.jax_.abstract_values import Jaxpr, array_type
from graphir.runtime.sources.jax_.lax_rows import ROWS, Equation
from graphir.runtime.sources.op_rows import Attribute, Emitted
from graphir.runtime.user_code import MakingLine, component_made, part_made, value_made


class _Call(NamedTuple):
    """A call of a jitted function: its arguments, with their names.

    An array that a program closes over and no op has read yet is None.
    """

    arguments: Sequence[Symbol | None]
    names: Sequence[str]
    place: Location


class JittedCalls:
    """The calls of the user's jitted functions, by function."""

    def __init__(self) -> None:
        self._calls: dict[str, list[_Call]] = {}

    def add(self, jaxpr: Jaxpr, arguments: Sequence[Symbol | None], place: Location) -> None:
        """Record a call of the function of a jaxpr at a place."""
        info = jaxpr.jaxpr.debug_info
        names = [name or "" for name in info.arg_names or ()]
        self._calls.setdefault(info.func_src_info, []).append(_Call(arguments, names, place))

    def notes(self, graph: Graph) -> Iterator[str]:
        """Yield a sentence for each argument whose type alone makes JAX trace a function again."""
        for source, calls in self._calls.items():
            for first, second in pairwise(calls):
                if len(first.arguments) != len(second.arguments):
                    continue
                pairs = zip(first.arguments, second.arguments, strict=True)
                if all(x is None or y is None or x.shape == y.shape for x, y in pairs):
                    yield from _note(graph, source.partition(" at ")[0], first, second)


def _note(graph: Graph, function: str, first: _Call, second: _Call) -> Iterator[str]:
    for i, (x, y) in enumerate(zip(first.arguments, second.arguments, strict=True)):
        if x is None or y is None or x.dtype is y.dtype:
            continue
        name = first.names[i] if i < len(first.names) else f"argument {i}"
        change = change_of(graph, [x], y, x.dtype)
        why = f", because {change_text(change, x.dtype)}" if change else ""
        made = component_made(first.place, name) if x.op in (ops.constant, ops.input) else None
        since = f" since {made.seen_from(first.place)}" if made else ""
        yield (
            f"{printable(function)} is compiled twice: `{printable(name)}` is {x.dtype}{since} in "
            f"one call and {y.dtype} in the next{why}; {start_text(name, x, y.dtype)}"
        )


class DTypeChange(NamedTuple):
    """The op that changes the dtype of a value, and the position of the value."""

    step: Symbol
    position: int


def change_of(
    graph: Graph, origins: Sequence[Symbol], result: Symbol, dtype: DType
) -> DTypeChange | None:
    """Return the op between `origins` and a result that makes another dtype of `dtype`."""
    from_origins = {x.index for x in origins}
    for symbol in graph.symbols[min(from_origins) :]:
        if any(arg.index in from_origins for arg in symbol.args):
            from_origins.add(symbol.index)
    queue, visited = [result], {result.index}
    while queue:
        symbol = queue.pop(0)
        for i, arg in enumerate(symbol.args):
            if arg.index not in from_origins or type(arg.type) is not TensorType:
                continue
            if arg.dtype is dtype and type(symbol.type) is TensorType and symbol.dtype is not dtype:
                return DTypeChange(symbol, i)
            if arg.index not in visited:
                visited.add(arg.index)
                queue.append(arg)
    return None


def change_text(change: DTypeChange, dtype: DType) -> str:
    """Return the clause about an op that changes a dtype: `line 3 has add of `x`, a weak_float`."""
    step, position = change
    source = expression(step.location)
    operand = " ".join(source.operand(position).split()) if source else ""
    what = f"`{printable(operand)}`" if operand else step.op.operand(position)
    dtypes = " and ".join(str(x.dtype) for x in step.args)
    rule = f"{step.graph.rules.name}: {dtypes} -> {step.dtype}"
    text = f" in `{printable(source.brief)}`" if source else ""
    return f"line {step.location.line} has {step.op.name} of {what}, a {dtype}{text} ({rule})"


def start_text(name: str, start: Symbol, dtype: DType) -> str:
    """Return the advice to start a value in the dtype that it takes later."""
    if start.op is ops.constant and not start.rank:
        return f"start it with jnp.{dtype}({start.attrs['value'].item()!r})"
    return f'start it with jnp.asarray({printable(name)}, "{dtype}")'


class RefusedLoop(NamedTuple):
    """A loop that JAX refuses, since its body returns carries of other types."""

    kind: str
    body: Any
    """The jaxpr of the body, whose inputs are its constants, the carries, and what is scanned."""
    constants: Sequence[Any]
    names: Sequence[str]
    """The names of the carries."""
    frames: Sequence[tuple[CodeType, int]]
    """The frames that called the loop, innermost first."""

    def refusal(self, graph: Graph, values: Sequence[Any], location: Location) -> GraphError:
        """Return the error for the loop at a location, by the `graph` of its body.

        `values` are the inputs of the body.
        """
        first, sentences = len(self.constants), list[str]()
        for name, carry, result in zip(self.names, values[first:], graph.outputs, strict=False):
            if carry.dtype is result.dtype:
                continue
            change = change_of(graph, [carry], result, carry.dtype)
            text = f"{name} is {carry.dtype} before a round and {result.dtype} after it"
            steps: list[Symbol] = []
            if not carry.dtype.weak:
                report = cast_report(graph.with_outputs([result]))
                steps = [cause.step for cause in report.dtype_causes if cause.outputs]
                text = "; ".join([text, *report.sentences[:1]]) if steps else text
                change = None if steps else change
            if change is not None:
                text = f"{text}; {change_text(change, carry.dtype)}"
            if not steps and change is None:
                steps = _bearing(graph, result)
                text += "".join(_bearing_text(step, location) for step in steps)
            for step in [*steps, *(() if change is None else (change.step,))][:1]:
                text += _operand_made(step)
            start = self._start(location)
            made = None if start is None else part_made(location, start, name)
            if made is None and isinstance(start, ast.Call):
                line = location.line + start.lineno - 1
                made = MakingLine(location.file, line, ast.unparse(start))
            since = made.seen_from(location) if made else ""
            if carry.dtype.weak:
                initial = "" if start is None else f" of `{printable(ast.unparse(start))}`"
                text += f"; start {name}{initial} with {_zero(result.dtype)}"
                text += f" ({since})" if since else ""
            elif since:
                text += f"; {name} starts as {carry.dtype} in {since}"
            sentences.append(text)
        problem = "a carry changes its dtype; " + "; ".join(sentences)
        return GraphError(problem).at(location, self.kind)

    def _start(self, location: Location) -> ast.expr | None:
        """Return the argument with the first carries."""
        source = expression(location)
        node = statement(source.text) if source else None
        call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        position, name = {"scan": (1, "init"), "while_loop": (2, "init_val")}[self.kind]
        if not isinstance(call, ast.Call):
            return None
        named = [x.value for x in call.keywords if x.arg == name]
        return next(iter([*call.args[position:], *named]), None)


def _bearing(graph: Graph, result: Symbol) -> list[Symbol]:
    """Return the step with a line of source by which a body has the dtype of a result, if any.

    It is where the dtype is born or, of a value from outside of the body, its first use.
    """
    birth = births_of(graph).of(result)
    users = (x for x in graph.symbols if any(y is birth for y in x.args))
    steps = [birth] if birth.op is not ops.input else [*users]
    return [x for x in steps if x.dtype is birth.dtype and expression(x.location)][:1]


def _bearing_text(step: Symbol, location: Location) -> str:
    """Return the clause about such a step, as the loop at a location sees its line."""
    place, source = step.location, expression(step.location)
    made = MakingLine(place.file, place.line, source.brief if source else "")
    return f"; it is {step.dtype} since {made.seen_from(location)}"


def _operand_made(step: Symbol) -> str:
    """Return the clause about the operand that brings a step's dtype, by the line that made it."""
    source = expression(step.location)
    for i, arg in enumerate(step.args):
        operand = "" if source is None else source.operand(i)
        made = value_made(step.location, operand) if arg.dtype is step.dtype and operand else None
        if made is not None and made.line != step.location.line:
            return f"; `{printable(operand)}` is {arg.dtype} since {made.seen_from(step.location)}"
    return ""


def _zero(dtype: DType) -> str:
    return f"a value of {dtype}, such as jnp.{dtype}(0)"


def refused_loop(error: Exception) -> RefusedLoop | None:
    """Return the loop for whose carry JAX raised an error; None for another error."""
    frames = list[tuple[FrameType, int]]()
    traceback = error.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    if not frames or frames[-1][0].f_code.co_name != "_check_carry_type":
        return None
    local, kind = frames[-2][0].f_locals, frames[-2][0].f_code.co_name
    outer = [(frame.f_code, offset) for frame, offset in reversed(frames[:-2])]
    names = _LOCALS.get(kind)
    if names is None or any(name not in local for name in names):  # another version of JAX
        return None
    body, constants, carries, function = (local[name] for name in names)
    parameters = [*signature(function).parameters] or ["carry"]
    paths = getattr(carries, "paths", None) or [(i,) for i in range(len(carries))]
    texts = [parameters[0] + "".join(map(str, path)) for path in paths]
    return RefusedLoop(kind, body, constants, texts, outer)


_LOCALS = {
    "scan": ("jaxpr", "consts", "init_avals", "f"),
    "while_loop": ("body_jaxpr", "body_consts", "init_aval", "body_fun"),
}
"""The local variables of the functions of JAX: the body, its constants, its carries, the function.
"""


# -- rows


def _cond(e: Equation, *args: Symbol, branches: Sequence[Attribute]) -> Emitted:
    inner = [x.type for x in args[1:]]
    order = range(len(inner))
    bodies = tuple(e.importer.body(branch, inner, order) for branch in branches)
    return e.importer.control(ops.control.cond, args, {"branches": bodies})


def _while(
    e: Equation,
    *args: Symbol,
    cond_jaxpr: Attribute,
    body_jaxpr: Attribute,
    cond_nconsts: int,
    body_nconsts: int,
) -> Emitted:
    """JAX's operands are constants of the condition, constants of the body, carries."""
    importer, first, last = e.importer, cond_nconsts, cond_nconsts + body_nconsts
    carries = len(args) - last
    carry_types = _carry_types(body_jaxpr, body_nconsts, carries)
    operands = [*importer.conformed_all(args[last:], carry_types), *args[:last]]
    inner = [*carry_types, *(x.type for x in args[:last])]
    places = range(carries), range(carries, carries + first), range(carries + first, len(args))
    order = [*places[1], *places[0]]
    guard = (cond_jaxpr, order) if cond_jaxpr.out_avals[0].shape else None  # of the vmap of a loop
    if guard is not None and any(type(type_) is not TensorType for type_ in e.types):
        return None
    condition = importer.body(cond_jaxpr, inner, order, is_test=True)
    body = importer.body(body_jaxpr, inner, [*places[2], *places[0]], carry_types, guard)
    return importer.control(
        ops.control.while_loop, operands, {"condition": condition, "body": body}
    )


def _scan(
    e: Equation,
    *args: Symbol,
    jaxpr: Attribute,
    length: int,
    reverse: bool,
    num_consts: int = 0,
    num_carry: int = 0,
    ft_in: Attribute = None,
    ft_out: Attribute = None,
) -> Emitted:
    """JAX's operands are constants, carries, what is scanned; since 0.11 trees of them say which.

    `ft_out` has the carries and the results of the rounds, as the jaxpr has.
    """
    importer, constants, carries = e.importer, num_consts, num_carry
    if ft_in is not None:
        constants, carries, _ = (len([*part]) for part in ft_in.unpack())
    inner = [array_type(variable.aval) for variable in jaxpr.jaxpr.invars]
    carry_types = inner[constants : constants + carries]
    started = importer.conformed_all(args[constants : constants + carries], carry_types)
    operands = [*started, *args[constants + carries :], *args[:constants]]
    order = [*range(len(args) - constants, len(args)), *range(len(args) - constants)]
    attrs = {
        "body": importer.body(jaxpr, [*inner[constants:], *inner[:constants]], order, carry_types),
        "carries": carries,
        "scanned": len(args) - constants - carries,
        "length": length,
        "reverse": reverse,
    }
    return importer.control(ops.control.scan, operands, attrs)


def _carry_types(jaxpr: Jaxpr, constants: int, carries: int) -> list[TensorType]:
    """Return the types in which a body takes its carries.

    JAX types them by the values before the first round, which it makes strong where only the body
    does. The results of the loop may be weak where the body takes strong carries.
    """
    variables = jaxpr.jaxpr.invars[constants : constants + carries]
    return [array_type(variable.aval) for variable in variables]


LOOPS = frozenset(("cond", "while", "scan"))
"""The primitives of control flow. Their rows take typed keys, which are arrays of their data."""

ROWS.update(cond=_cond, scan=_scan)
ROWS["while"] = _while
