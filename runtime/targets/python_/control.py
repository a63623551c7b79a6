"""Control flow as Python statements; the graphs are written in place, as blocks of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from graphir import DType, Graph
from graphir.runtime.binding import numpy_name
from graphir.runtime.targets.python_.ops import Line


class Block(NamedTuple):
    """The lines that compute a graph, and the expressions of its outputs."""

    lines: list[str]
    outputs: list[str]


class ControlLine(NamedTuple):
    """An op of control flow to write.

    `results` are the names for its results. `block` writes a graph on operands, and `name` returns
    a unique name.
    """

    line: Line
    results: Sequence[str]
    block: Callable[[Graph, Sequence[str]], Block]
    name: Callable[[str], str]


Statements: TypeAlias = Callable[[ControlLine], Iterator[str]]


def _cond(control: ControlLine) -> Iterator[str]:
    """Write if, elif and else; the comparisons clamp the index."""
    line = control.line
    dtype = line.symbol.args[0].dtype
    branches: Sequence[Graph] = line.symbol.attrs["branches"]
    branches = branches[:2] if dtype is DType.bool else branches
    index = f"int({line[0]})" if dtype.narrow else line[0]
    for place, branch in enumerate(branches):
        test = f"{index} == {place}"
        if not place:
            test = f"not {index}" if dtype is DType.bool else f"{index} <= 0"
        lines = _assigned(control, control.block(branch, line.args[1:]))
        if len(branches) == 1:
            yield from lines
            return
        last = place == len(branches) - 1
        yield "else:" if last else f"{'elif' if place else 'if'} {test}:"
        yield from _indented(lines)


def _while_loop(control: ControlLine) -> Iterator[str]:
    line, results = control.line, control.results
    initial, captured = line.args[: len(results)], line.args[len(results) :]
    yield _assignment(results, initial)
    test = control.block(line.symbol.attrs["condition"], [*results, *captured])
    (verdict,) = test.outputs
    before = test.lines
    if len(before) == 1 and before[0].startswith(f"{verdict} = "):
        before, verdict = [], before[0].removeprefix(f"{verdict} = ")
    yield f"while {verdict}:" if not before else "while True:"
    if before:
        yield from _indented([*before, f"if not {verdict}:", "    break"])
    body = control.block(line.symbol.attrs["body"], [*results, *captured])
    yield from _indented(_assigned(control, body))


def _scan(control: ControlLine) -> Iterator[str]:
    line, attrs = control.line, control.line.symbol.attrs
    carries, ends = attrs["carries"], attrs["carries"] + attrs["scanned"]
    scanned, captured = line.args[carries:ends], line.args[ends:]
    values, stacked = control.results[:carries], control.results[carries:]
    if values:
        yield _assignment(values, line.args[:carries])
    for name, type_ in zip(stacked, line.symbol.type.parts[carries:], strict=True):
        yield f"{name} = np.empty({line.tuple(type_.shape)}, {numpy_name(type_.dtype)})"
    place = control.name("i")
    places = f"range({f'len({scanned[0]})' if scanned else line['length']})"
    yield f"for {place} in {f'reversed({places})' if attrs['reverse'] else places}:"
    rows = [control.name("row") for _ in scanned]
    lines, outputs = control.block(attrs["body"], [*values, *rows, *captured])
    yield from _indented(f"{row} = {x}[{place}, ...]" for row, x in zip(rows, scanned, strict=True))
    yield from _indented(lines)
    updates = [f"{name}[{place}] = {y}" for name, y in zip(stacked, outputs[carries:], strict=True)]
    yield from _indented(updates)
    if values:
        yield from _indented([_assignment(values, outputs[:carries])])


STATEMENTS: Mapping[str, Statements] = {"cond": _cond, "while_loop": _while_loop, "scan": _scan}
"""The statements of each op of control flow."""


def _assigned(control: ControlLine, block: Block) -> list[str]:
    return [*block.lines, _assignment(control.results, block.outputs)]


def _assignment(names: Sequence[str], values: Sequence[str]) -> str:
    return f"{', '.join(names)} = {', '.join(values)}"


def _indented(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)
