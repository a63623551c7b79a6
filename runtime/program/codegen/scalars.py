"""Code for scalars: regions of 0-d values as Python expressions, and loops as Python functions.

Expressions on NumPy scalars cost a fifth of ufunc calls on 0-d arrays. Python's arithmetic and
comparisons of NumPy scalars have the bits of the ufuncs; all other ops become function calls.

A loop over scalars has only a few operations, and a call of a function costs as much as two of
them. So the statements of a loop's bodies are inlined into a `for`. The variables of a body get a
prefix; its inputs that are carries are assigned anew at the end of an iteration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphir.public import Symbol
from graphir.runtime.program.codegen.assembly import FunctionWriter
from graphir.runtime.program.codegen.casting import cast_to_integer
from graphir.runtime.program.codegen.instructions import Instruction, Placed, RegionCode, entering
from graphir.runtime.program.codegen.tracing import Storage, assign, select
from graphir.runtime.program.cost_model import COST

_REAL, _COMPLEX, _WHOLE, _TRUTH = "iuf", "iufc", "iu", "b"

_OPERATORS: dict[Any, tuple[str, str]] = {
    np.add: ("{} + {}", _COMPLEX),
    np.subtract: ("{} - {}", _COMPLEX),
    np.multiply: ("{} * {}", _REAL),
    np.square: ("{0} * {0}", _REAL),
    np.true_divide: ("{} / {}", "f"),
    np.floor_divide: ("{} // {}", _WHOLE),
    np.remainder: ("{} % {}", _WHOLE),
    np.negative: ("-{}", "if"),
    np.absolute: ("abs({})", "if"),
    np.bitwise_and: ("{} & {}", _WHOLE),
    np.bitwise_or: ("{} | {}", _WHOLE),
    np.bitwise_xor: ("{} ^ {}", _WHOLE),
    np.logical_and: ("{} & {}", _TRUTH),
    np.logical_or: ("{} | {}", _TRUTH),
    np.less: ("{} < {}", _REAL),
    np.less_equal: ("{} <= {}", _REAL),
    np.greater: ("{} > {}", _REAL),
    np.greater_equal: ("{} >= {}", _REAL),
    np.equal: ("{} == {}", _REAL),
    np.not_equal: ("{} != {}", _REAL),
}
"""The expressions of ufuncs, and the kinds of dtypes for which NumPy's scalars have the bits of the
ufuncs."""


class Scalars:
    """The generator of Python expressions for a region of 0-d values."""

    def __init__(self, code: RegionCode) -> None:
        self.code = code
        self.inputs: tuple[Symbol, ...] = tuple(code.inputs.values())
        self.outs: tuple[Symbol, ...] = tuple(code.outs)
        self.live = code.live(code.outs.values())

    def write(self, writer: FunctionWriter, reads: Sequence[str]) -> list[str]:
        """Write the statements that compute the results; return their names, as NumPy scalars.

        `reads` are expressions of the inputs as NumPy scalars.
        """
        code = self.code
        names = {k: f"r{len(writer.lines)}_{k}" for k in range(len(code.dtypes))}
        for register, value in code.constants.items():
            names[register] = writer.name(value[()])
        for (register, symbol), name in zip(code.inputs.items(), reads, strict=True):
            if enter := entering(symbol):
                name = f"{writer.name(enter)}({writer.name(np.asarray)}({name}))[()]"
            if name.isidentifier():
                names[register] = name
            else:
                writer.lines.append(f"{names[register]} = {name}")
        for register, base in enumerate(code.bases):
            if base != register:
                names[register] = f"{names[base]}.view({writer.name(code.dtypes[register])})"
        writer.lines += [self._line(instruction, writer, names) for instruction in self.live]
        return [names[register] for register in code.outs.values()]

    def _line(
        self, instruction: Instruction, writer: FunctionWriter, names: Mapping[int, str]
    ) -> str:
        function, args, out, _ = instruction
        operand_names = [names[arg] for arg in args]
        dtypes = self.code.dtypes
        text, kinds = _OPERATORS.get(function, ("", ""))
        if text and all(dtypes[arg].kind in kinds for arg in args):
            return f"{names[out]} = {text.format(*operand_names)}"
        if function is assign:
            return f"{names[out]} = {operand_names[0]}.astype({writer.name(dtypes[out])})"
        if function is select:
            return (
                f"{names[out]} = {operand_names[1]} if {operand_names[0]} else {operand_names[2]}"
            )
        to = cast_to_integer(function.function if isinstance(function, Placed) else function)
        if to and dtypes[args[0]].char in "fd":
            low, high = int(to.min), int(to.max)
            x, name = operand_names[0], writer.name(_returning(function, dtypes[out]))
            integer = f"{writer.name(dtypes[out].type)}(int({x}))"
            test = f"{float(low)} <= {x} < {float(high + 1)}"  # both are exact in a float32
            return f"{names[out]} = {integer} if {test} else {name}({x})"
        # NumPy has other loops for complex scalars than for arrays: np.square differs by an ulp.
        of_complex = any(dtypes[arg].kind == "c" for arg in args)
        if of_complex or not isinstance(function, np.ufunc):
            function = _returning(function, dtypes[out])
        return f"{names[out]} = {writer.name(function)}({', '.join(operand_names)})"


def _returning(function: Callable[..., Any], dtype: Storage) -> Callable[..., Any]:
    """Return a function of scalars that returns a scalar, from one that writes into an array."""

    def compute(*scalars: np.generic) -> Any:
        out, arrays = np.empty((), dtype), map(np.asarray, scalars)
        if isinstance(function, np.ufunc):
            function(*arrays, out=out)
        else:
            function(*arrays, out)
        return out[()]

    return compute


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
        inputs, lines, results = (list(map(rename, texts)) for texts in self[:3])
        return Statements(inputs, lines, results, scope)


def inline_while_loop(
    condition: Statements, body: Statements, carries: int
) -> Callable[..., tuple[Sequence[Any], bool]] | None:
    """Return `run(workspace, iterations, *operands)`: the carries, and whether the loop ended.

    The answer is None if the bodies are long.
    """
    if len(condition.lines) + len(body.lines) > COST.INLINED_LINES:
        return None
    body = body.renamed("b", {})
    values = "".join([f"{name}, " for name in body.inputs[:carries]])
    writer = FunctionWriter()
    iteration = inline_iteration(condition, body, "c", values, f"return ({values}), True", writer)
    writer.lines = ["for _ in range(iterations):", *iteration]
    writer.lines.append(f"return ({values}), False")
    return writer.function(["workspace", "iterations", *body.inputs])


def inline_iteration(
    condition: Statements,
    body: Statements,
    prefix: str,
    values: str,
    end: str,
    writer: FunctionWriter,
) -> list[str]:
    """Return the statements of a iteration of a loop, indented; `end` is that which ends the loop.

    `values` are the carries of the body. The condition's variables get the prefix.
    """
    condition = condition.renamed(prefix, dict(zip(condition.inputs, body.inputs, strict=True)))
    writer.scope |= {**condition.scope, **body.scope}
    test = f"if not {condition.results[0]}: {end}"
    lines = [*condition.lines, test, *body.lines, *_assignment(values, body.results)]
    return [f"    {line}" for line in lines]


def inline_scan(
    body: Statements, carries: int, scanned: int
) -> Callable[..., Sequence[Any]] | None:
    """Return `run(workspace, places, rows, stacked, *others)`, which gives the carries.

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
    return writer.function(["workspace", "places", "rows", "ys", *others])


def _assignment(values: str, results: Sequence[str]) -> list[str]:
    return [f"{values} = {''.join([f'{name}, ' for name in results])}"] if results else []
