"""The instructions of a region: its symbols as ufunc calls over registers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Symbol, ops
from graphir.conversions import convert
from graphir.evaluation import machine
from graphir.kernels import KERNELS
from graphir.promotion.scalars import scalar
from runtime.program import casting
from runtime.program.cutting import Region, source_of
from runtime.program.tracing import Storage, Trace, Whole, assign, trace
from runtime.results import REFUSED, refused


class Place(NamedTuple):
    """A register, and the dtype as which its bits are read."""

    register: int
    dtype: Storage


class Instruction(NamedTuple):
    """One call: `function(*args, out)`. `symbol` is what it is a part of."""

    function: Callable[..., Any]
    args: tuple[Place, ...]
    out: Place
    symbol: Symbol


class Code:
    """The instructions of a region, over registers that are each written once.

    `bits`: narrow floats are rounded by arithmetic on bits, which pays for blocks of thousands, not
    by NumPy's casts. `inputs` are the symbols that are read, `constants` 0-d arrays, `outs` the
    storage forms of symbols that are needed elsewhere, `rows` the operands of those that are
    computed row by row.
    """

    def __init__(self, region: Region, needed: Collection[int], bits: bool) -> None:
        self.region, self.bits = region, bits
        self.tf32 = region.symbols[0].graph.tf32 if region.symbols else "even"
        self.instructions: list[Instruction] = []
        self.widths: list[int] = []
        self.inputs: dict[int, Symbol] = {}
        self.constants: dict[int, NDArray[Any]] = {}
        self.outs: dict[Symbol, Place] = {}
        self.rows: list[tuple[Symbol, Place]] = []
        self._values: dict[int, Place] = {}
        self._spare: dict[int, int] = {}
        for symbol in region.symbols:
            self._add(symbol)
        for symbol in region.symbols:
            if symbol.index in needed:
                self._out(symbol)
        for symbol in region.rows:
            self.rows.append((symbol, self._filled(symbol.args[0], symbol)))

    # -- values

    def _new(self, dtype: Storage) -> Place:
        self.widths.append(dtype.itemsize)
        return Place(len(self.widths) - 1, dtype)

    def _value(self, symbol: Symbol) -> Place:
        """Where the value of a symbol is, in the dtype of its register."""
        symbol = source_of(symbol)
        found = self._values.get(symbol.index)
        if found is None:
            found = self._values[symbol.index] = self._loaded(symbol)
        return found

    def _loaded(self, symbol: Symbol) -> Place:
        dtype = symbol.dtype
        self._spare[symbol.index] = casting.spare_bits(dtype)
        known = scalar_of(symbol)
        if known is not None:
            if not np.isnan(known).any():
                self._spare[symbol.index] = casting.spare_bits(DType.bool)
            return self._constant(known)
        place = self._new(dtype.storage)
        self.inputs[place.register] = symbol
        if symbol.op is ops.input and dtype is DType.tensor_float32:  # rounded on entry
            rounding = casting.cast(DType.float32, dtype, self.tf32, self.bits)
            return self._run(rounding, [place], symbol)
        return self._run(casting.load(dtype, self.bits), [place], symbol)

    def _constant(self, value: NDArray[Any]) -> Place:
        place = self._new(value.dtype)
        self.constants[place.register] = value
        return place

    def _run(self, trace: Trace, operands: Sequence[Place], symbol: Symbol) -> Place:
        """The result of a trace on operands."""
        if not trace.steps:
            index, dtype = trace.result
            return Place(operands[index].register, dtype)
        registers = [place.register for place in operands]
        constants = [self._constant(one).register for one in trace.constants]
        for step in trace.steps:
            args = tuple(
                [
                    Place(registers[i] if i >= 0 else constants[-i - 1], dtype)
                    for i, dtype in step.args
                ]
            )
            out = self._new(step.dtype)
            registers.append(out.register)
            self.instructions.append(Instruction(step.function, args, out, symbol))
        index, dtype = trace.result
        return Place(registers[index], dtype)

    def _add(self, symbol: Symbol) -> None:
        args = [self._value(arg) for arg in symbol.args]
        spare = [self._spare[source_of(arg).index] for arg in symbol.args]
        if symbol.op is ops.cast:
            source, target = symbol.args[0].dtype, symbol.dtype
            made = casting.cast(source, target, self.tf32, self.bits, spare[0])
            after = casting.spare_after(source, target, spare[0])
        else:
            made = _trace(symbol, tuple([place.dtype for place in args]), self.bits)
            after = min(spare)
        self._values[symbol.index] = self._run(made, args, symbol)
        self._spare[symbol.index] = after

    # -- results

    def _out(self, symbol: Symbol) -> None:
        place = self._run(casting.store(symbol.dtype, self.bits), [self._value(symbol)], symbol)
        taken = {out.register for out in self.outs.values()}
        if self._is_given(place) or place.register in taken:
            place = self._copied(place, symbol)
        self.outs[symbol] = Place(place.register, symbol.dtype.storage)

    def _filled(self, symbol: Symbol, user: Symbol) -> Place:
        """An operand of rows, which must be whole: not repeated, and not a constant."""
        place = self._value(symbol)
        inside = place.register in self.inputs and source_of(symbol) is symbol
        return place if inside or not self._is_given(place) else self._copied(place, user)

    def _is_given(self, place: Place) -> bool:
        return place.register in self.inputs or place.register in self.constants

    def _copied(self, place: Place, symbol: Symbol) -> Place:
        out = self._new(place.dtype)
        self.instructions.append(Instruction(assign, (place,), out, symbol))
        return out


def scalar_of(symbol: Symbol) -> NDArray[Any] | None:
    """The one value of a constant or of `full`, as it lies in a register; else None."""
    if symbol.op is ops.constant and not symbol.rank:
        array = symbol.attrs["value"]
    elif symbol.op is ops.full:
        array = scalar(symbol.attrs["value"], symbol.dtype, symbol.graph.tf32)
    else:
        return None
    return convert(array, symbol.dtype, machine(symbol.dtype))


def _trace(symbol: Symbol, dtypes: tuple[Storage, ...], bits: bool) -> Trace:
    attrs = tuple(symbol.attrs.items())
    made = _traced(symbol.op.name, attrs, dtypes, casting.register(symbol.dtype), bits)
    if isinstance(made.steps[-1].function if made.steps else None, Whole):
        last = made.steps[-1]
        return made._replace(steps=(last._replace(function=Placed(last.function, symbol)),))
    return made


@cache
def _traced(
    name: str,
    attrs: tuple[tuple[str, Any], ...],
    dtypes: tuple[Storage, ...],
    result: Storage,
    bits: bool,
) -> Trace:
    kernel = KERNELS[name]
    return trace(partial(kernel, **dict(attrs)) if attrs else kernel, dtypes, result, bits)


class Placed:
    """A step that may refuse its operands, which is told with the line of its symbol."""

    def __init__(self, function: Callable[..., Any], symbol: Symbol) -> None:
        self.function, self.symbol = function, symbol

    def __call__(self, *args: Any) -> None:
        """Do the step."""
        try:
            self.function(*args)
        except REFUSED as error:
            raise refused(error, self.symbol) from None
