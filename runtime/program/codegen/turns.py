"""Loops as one Python function: the statements of the bodies, inlined into a `for`.

A call of a function costs as much as two operations on NumPy scalars, and a loop over scalars has
only a few. The variables of a body get a prefix; its inputs that are carries are assigned anew at
the end of a turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graphir.runtime.program.codegen.assembly import FunctionWriter
from graphir.runtime.program.cost_model import COST

_VARIABLE = re.compile(r"\b[a-z]\d+(?:[a-z_]\d+)*\b")


class Statements(NamedTuple):
    """The source of a function: its inputs, statements and results, and its global names."""

    inputs: Sequence[str]
    lines: Sequence[str]
    results: Sequence[str]
    scope: Mapping[str, Any]

    def renamed(self, prefix: str, names: Mapping[str, str]) -> Statements:
        """Return the same statements with other variables: those of `names`, or with a prefix."""

        def rename(text: str) -> str:
            return _VARIABLE.sub(lambda match: names.get(match[0]) or prefix + match[0], text)

        scope = {rename(name): value for name, value in self.scope.items()}
        inputs, lines, results = (list(map(rename, each)) for each in self[:3])
        return Statements(inputs, lines, results, scope)


def while_turns(
    condition: Statements, body: Statements, carries: int
) -> Callable[..., tuple[Sequence[Any], bool]] | None:
    """Return `run(lane, turns, *operands)`, which gives the carries, and whether the loop ended.

    The answer is None if the bodies are long.
    """
    if len(condition.lines) + len(body.lines) > COST.INLINED_LINES:
        return None
    body = body.renamed("b", {})
    values = "".join([f"{name}, " for name in body.inputs[:carries]])
    writer = FunctionWriter()
    turn = while_turn(condition, body, "c", values, f"return ({values}), True", writer)
    writer.lines = ["for _ in range(turns):", *turn]
    writer.lines.append(f"return ({values}), False")
    return writer.function(["lane", "turns", *body.inputs])


def while_turn(
    condition: Statements,
    body: Statements,
    prefix: str,
    values: str,
    end: str,
    writer: FunctionWriter,
) -> list[str]:
    """Return the statements of a turn of a loop, indented; `end` is that which ends the loop.

    `values` are the carries of the body. The condition's variables get the prefix.
    """
    condition = condition.renamed(prefix, dict(zip(condition.inputs, body.inputs, strict=True)))
    writer.scope |= {**condition.scope, **body.scope}
    test = f"if not {condition.results[0]}: {end}"
    lines = [*condition.lines, test, *body.lines, *_assignment(values, body.results)]
    return [f"    {line}" for line in lines]


def scan_turns(body: Statements, carries: int, scanned: int) -> Callable[..., Sequence[Any]] | None:
    """Return `run(lane, places, rows, stacked, *others)`, which gives the carries.

    `rows` are the arrays by whose rows it runs, `stacked` those of the other results, and `others`
    the carries and the captured values. The answer is None if the body is long.
    """
    if len(body.lines) > COST.INLINED_LINES:
        return None
    body = body.renamed("b", {})
    end = carries + scanned
    values = "".join([f"{name}, " for name in body.inputs[:carries]])
    lines = [f"{name} = x{k}[place]" for k, name in enumerate(body.inputs[carries:end])]
    lines += body.lines
    lines += [f"y{k}[place] = {name}" for k, name in enumerate(body.results[carries:])]
    lines += _assignment(values, body.results[:carries])
    writer = FunctionWriter()
    writer.scope |= body.scope
    for letter, count, name in (("x", scanned, "rows"), ("y", len(body.results) - carries, "ys")):
        if count:
            writer.lines.append(f"{''.join([f'{letter}{k}, ' for k in range(count)])} = {name}")
    writer.lines += ["for place in places:", *[f"    {line}" for line in lines]]
    writer.lines.append(f"return ({values})")
    others = [*body.inputs[:carries], *body.inputs[end:]]
    return writer.function(["lane", "places", "rows", "ys", *others])


def _assignment(values: str, results: Sequence[str]) -> list[str]:
    return [f"{values} = {''.join([f'{name}, ' for name in results])}"] if results else []
