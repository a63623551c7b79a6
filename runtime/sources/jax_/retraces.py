"""Types that are no fixpoint: a second trace of a jitted function, and a loop that JAX refuses.

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

from graphir import DType, Graph, GraphError, Location, Symbol, TensorType, ops
from graphir.escape import printable
from graphir.passes import cast_report
from graphir.passes.analysis.expressions import expression, statement


class _Call(NamedTuple):
    """A call of a jitted function: its arguments, with their names.

    An array that a program closes over and no op has read yet is None.
    """

    arguments: Sequence[Symbol | None]
    names: Sequence[str]


class JittedCalls:
    """The calls of the user's jitted functions, by function."""

    def __init__(self) -> None:
        self._calls: dict[str, list[_Call]] = {}

    def add(self, jaxpr: Any, arguments: Sequence[Symbol | None]) -> None:
        """Record a call of the function of a jaxpr."""
        info = jaxpr.jaxpr.debug_info
        names = [name or "" for name in info.arg_names or ()]
        self._calls.setdefault(info.func_src_info, []).append(_Call(arguments, names))

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
        yield (
            f"{printable(function)} is compiled twice: `{printable(name)}` is {x.dtype} in one "
            f"call and {y.dtype} in the next{why}; {start_text(name, x, y.dtype)}"
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
        start, sentences = len(self.constants), list[str]()
        outputs = graph.outputs
        for name, carry, result in zip(self.names, values[start:], outputs, strict=False):
            if carry.dtype is result.dtype:
                continue
            graph.outputs = (result,)
            change = change_of(graph, [carry], result, carry.dtype)
            text = f"{name} is {carry.dtype} before a round and {result.dtype} after it"
            if not carry.dtype.weak:
                report = cast_report(graph)
                text = "; ".join([text, *report.sentences])
                change = None if report.sentences else change
            if change is not None:
                text = f"{text}; {change_text(change, carry.dtype)}"
            if carry.dtype.weak:
                initial = self._initial(location)
                text += f"; start {name}{initial} with {_zero(result.dtype)}"
            sentences.append(text)
        graph.outputs = outputs
        problem = "a carry changes its dtype; " + "; ".join(sentences)
        return GraphError(problem).at(location, self.kind)

    def _initial(self, location: Location) -> str:
        """Return the text of the argument with the first carries: ` of `start``."""
        source = expression(location)
        node = statement(source.text) if source else None
        call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        position = {"scan": 1, "while_loop": 2}[self.kind]
        if not isinstance(call, ast.Call) or len(call.args) <= position:
            return ""
        return f" of `{printable(ast.unparse(call.args[position]))}`"


def _zero(dtype: DType) -> str:
    return f"a value of {dtype}, such as jnp.{dtype}(0)"


def refused_loop(error: TypeError) -> RefusedLoop | None:
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
    names = _LOOPS.get(kind)
    if names is None or any(name not in local for name in names):  # another version of JAX
        return None
    body, constants, carries, function = (local[name] for name in names)
    parameters = [*signature(function).parameters] or ["carry"]
    paths = getattr(carries, "paths", None) or [(i,) for i in range(len(carries))]
    texts = [parameters[0] + "".join(map(str, path)) for path in paths]
    return RefusedLoop(kind, body, constants, texts, outer)


_LOOPS = {
    "scan": ("jaxpr", "consts", "init_avals", "f"),
    "while_loop": ("body_jaxpr", "body_consts", "init_aval", "body_fun"),
}
"""The local variables of the functions of JAX: the body, its constants, its carries, the function.
"""
