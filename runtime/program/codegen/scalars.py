"""Code generation for regions of 0-d values: Python expressions on NumPy scalars.

Such expressions cost a fifth of ufunc calls on 0-d arrays. Python's arithmetic and comparisons of
NumPy scalars have the bits of the ufuncs; all other ops become function calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphir import Symbol
from graphir.runtime.program.codegen.assembly import FunctionWriter, prepared
from graphir.runtime.program.codegen.casting import cast_to_integer
from graphir.runtime.program.codegen.instructions import Instruction, Placed, RegionCode, entering
from graphir.runtime.program.codegen.tracing import assign, select

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
            whole = f"{writer.name(dtypes[out].type)}(int({x}))"
            test = f"{float(low)} <= {x} < {float(high + 1)}"  # both are exact in a float32
            return f"{names[out]} = {whole} if {test} else {name}({x})"
        # NumPy has other loops for complex scalars than for arrays: np.square differs by an ulp.
        of_complex = any(dtypes[arg].kind == "c" for arg in args)
        if of_complex or not isinstance(function, np.ufunc):
            function = _returning(function, dtypes[out])
        return f"{names[out]} = {writer.name(function)}({', '.join(operand_names)})"


def _returning(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """Return a function of scalars that returns a scalar, from one that writes into an array."""

    def compute(*scalars: Any) -> Any:
        out = np.empty((), dtype)
        function(*map(np.asarray, scalars), out=out)
        return out[()]

    def call(*scalars: Any) -> Any:
        out = np.empty((), dtype)
        step, *arrays = prepared(function, [*map(np.asarray, scalars), out])
        step(*arrays)
        return out[()]

    return compute if isinstance(function, np.ufunc) else call
