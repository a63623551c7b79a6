"""Instruction selection: the symbols of a region as ufunc calls over virtual registers.

Each register is written once. Each symbol becomes the steps of its kernel's trace (see `tracing`);
values of narrow dtypes lie in wider registers (see `casting`). `assembly` allocates the registers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.ir.liveness import binders_of, binders_used
from graphir.promotion.scalars import scalar
from graphir.public import DType, Graph, Op, Symbol, ops
from graphir.runtime.program.codegen import casting
from graphir.runtime.program.codegen.tracing import KernelTrace, Storage, Whole, assign, trace
from graphir.runtime.program.cutting import Call, Region, source_of
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.semantics.evaluation import machine
from graphir.semantics.kernels import KERNEL_TABLES

Attributes: TypeAlias = tuple[tuple[str, Any], ...]
Instruction: TypeAlias = tuple[Callable[..., Any], tuple[int, ...], int, Symbol]
"""One call `function(*args, out)`: the function, its operand registers, its result register, and
the symbol to which the call belongs."""


_SPREADING = (np.maximum, np.minimum)


class RegionCode:
    """The instructions of a region over virtual registers, each of which is written once.

    `dtypes` has the dtype of each register. A register may be a view that reads another register
    in another dtype: `bases` has the register that owns the memory, which for most registers is
    the register itself. With `bits`, narrow floats are rounded by bit arithmetic instead of NumPy's
    casts; that pays for blocks of thousands of elements.

    `inputs` are the registers of the symbols that the region loads, `constants` those of 0-d
    arrays. `outs` maps each materialized symbol to the register of its storage form. `rows` are the
    row-wise symbols with the registers of their first operands.
    """

    tables: Mapping[str, Mapping[str, Callable[..., Any]]] = KERNEL_TABLES

    def __init__(self, region: Region, materialized: Collection[int], bits: bool) -> None:
        self.region, self.bits = region, bits
        graph = region.symbols[0].graph if region.symbols else None
        self.tf32 = graph.tf32 if graph else "even"
        self._kernels = self.tables[graph.functions if graph else "numpy"]
        self.instructions: list[Instruction] = []
        self.dtypes: list[Storage] = []
        self.bases: list[int] = []
        self.inputs: dict[int, Symbol] = {}
        self.constants: dict[int, NDArray[Any]] = {}
        self.outs: dict[Symbol, int] = {}
        self._out_bases: set[int] = set()
        self.rows: list[tuple[Symbol, int]] = []
        self._values: dict[Symbol, int] = {}
        self._spare: dict[int, int] = {}
        self._views: dict[tuple[int, Storage], int] = {}
        self._filled_with: dict[int, int] = {}
        self._traces: dict[Any, tuple[KernelTrace, int]] = {}
        self._add(region.symbols)
        for symbol in region.symbols:
            if symbol.index in materialized:
                self._out(symbol)
        for symbol in region.rows:
            self.rows.append((symbol, self._row_operand(symbol.args[0], symbol)))

    def live(self, registers: Iterable[int]) -> list[Instruction]:
        """Return the live instructions for some registers: those that compute their values."""
        live_bases = {self.bases[register] for register in registers}
        instructions: list[Instruction] = []
        for instruction in reversed(self.instructions):
            if instruction[2] in live_bases:
                live_bases.update([self.bases[arg] for arg in instruction[1]])
                instructions.append(instruction)
        return instructions[::-1]

    # -- values

    def _new(self, dtype: Storage) -> int:
        register = len(self.dtypes)
        self.dtypes.append(dtype)
        self.bases.append(register)
        return register

    def _as(self, register: int, dtype: Storage) -> int:
        """Return the register that reads the memory of `register` in `dtype`."""
        if self.dtypes[register] == dtype:
            return register
        base = self.bases[register]
        if self.dtypes[base] == dtype:
            return base
        view = self._views.get((base, dtype))
        if view is None:
            view = self._views[base, dtype] = self._new(dtype)
            self.bases[view] = base
        return view

    def _value(self, symbol: Symbol) -> int:
        """Return the register of a symbol's value; load the value on its first use."""
        symbol = source_of(symbol)
        register_ = self._values.get(symbol)
        if register_ is None:
            register_ = self._values[symbol] = self._load_value(symbol)
        return register_

    def _load_value(self, symbol: Symbol) -> int:
        dtype = symbol.dtype
        scalar = scalar_of(symbol)
        if scalar is not None:
            register_ = self._constant(scalar)
            number = not np.isnan(scalar).any()
            self._spare[register_] = casting.spare_bits(DType.bool if number else dtype)
            return register_
        register = self._new(dtype.storage)
        self.inputs[register] = symbol
        register_ = self._run(self._load(symbol), [register], symbol)
        self._spare[register_] = casting.spare_bits(dtype)
        return register_

    def _constant(self, value: NDArray[Any]) -> int:
        register = self._new(value.dtype)
        self.constants[register] = value
        return register

    def _run(self, trace: KernelTrace, operands: Sequence[int], symbol: Symbol) -> int:
        """Append the instructions of a trace on operands, and return the register of its result."""
        registers = [*operands]
        constants = [self._constant(constant) for constant in trace.constants]
        for function, reads, dtype in trace.steps:
            args = tuple(
                [
                    self._as(registers[i] if i >= 0 else constants[-i - 1], storage)
                    for i, storage in reads
                ]
            )
            if function in _SPREADING:
                args = tuple([self._spread(arg, symbol) for arg in args])
            out = self._new(dtype)
            registers.append(out)
            self.instructions.append((function, args, out, symbol))
        index, dtype = trace.result
        return self._as(registers[index], dtype)

    def _spread(self, register: int, symbol: Symbol) -> int:
        """Return an operand of one element as a block: np.maximum is three times as fast on it."""
        base = self.bases[register]
        single = base in self.constants or (base in self.inputs and not self.inputs[base].rank)
        if not (single and self.bits):
            return register
        block = self._filled_with.get(register)
        if block is None:
            block = self._filled_with[register] = self._copy(register, symbol)
        return block

    def _add(self, symbols: Sequence[Symbol]) -> None:
        """Append the instructions of symbols; this loop dominates planning, so it inlines much."""
        values, spares, traces = self._values, self._spare, self._traces
        dtypes, bases, instructions = self.dtypes, self.bases, self.instructions
        for symbol in symbols:
            args, op, dtype, attrs = symbol.args, symbol.op, symbol.type.dtype, symbol.attrs
            operands = [values.get(arg, -1) for arg in args]
            if -1 in operands:
                operands = [self._value(arg) for arg in args]
            spare = min([spares[operand] for operand in operands])
            # The first and the last dtype suffice: of three operands the last two share a dtype.
            key = op, dtype, spare, args[0].type.dtype, args[-1].type.dtype
            if attrs and op is not ops.cast:
                key = (*key, *attrs.items())
            entry = traces.get(key)
            if entry is None:
                entry = traces[key] = self._trace_symbol(symbol, operands, spare)
            trace_, spare = entry
            if trace_.plain:
                function, _, storage = trace_.steps[0]
                if type(function) is Whole:
                    function = Placed(function, symbol)
                elif function in _SPREADING:
                    operands = [self._spread(operand, symbol) for operand in operands]
                register_ = len(dtypes)
                dtypes.append(storage)
                bases.append(register_)
                instructions.append((function, tuple(operands), register_, symbol))
            else:
                register_ = self._run(trace_, operands, symbol)
                # The result may be the register of an operand, which keeps its lower bound.
                spare = min(spare, spares.get(register_, spare))
            values[symbol] = register_
            spares[register_] = spare

    def _trace_symbol(
        self, symbol: Symbol, operands: Sequence[int], spare: int
    ) -> tuple[KernelTrace, int]:
        """Return the trace of a symbol, and the spare bits of its result."""
        if symbol.op is ops.cast:
            source, target = symbol.args[0].dtype, symbol.dtype
            after = casting.spare_after(source, target, spare)
            return self._cast(source, target, spare), after
        dtypes = tuple([self.dtypes[operand] for operand in operands])
        return self._trace_op(symbol.op, tuple(symbol.attrs.items()), dtypes, symbol.dtype), spare

    # -- traces of conversions and ops

    def _load(self, symbol: Symbol) -> KernelTrace:
        return casting.load(symbol.dtype, self.bits)

    def _store(self, dtype: DType) -> KernelTrace:
        return casting.store(dtype, self.bits)

    def _cast(self, source: DType, target: DType, spare: int) -> KernelTrace:
        return casting.cast(source, target, self.tf32, self.bits, spare)

    def _trace_op(
        self, op: Op, attrs: Attributes, dtypes: Sequence[Storage], to: DType
    ) -> KernelTrace:
        kernel = self._kernels[op.name]
        return _trace_kernel(kernel, attrs, tuple(dtypes), casting.register(to), self.bits)

    # -- results

    def _out(self, symbol: Symbol) -> None:
        register_ = self._run(self._store(symbol.dtype), [self._value(symbol)], symbol)
        base = self.bases[register_]
        if base in self._out_bases or self._is_given(base):
            register_ = self._copy(register_, symbol)
        self.outs[symbol] = self._as(register_, symbol.dtype.storage)
        self._out_bases.add(self.bases[register_])

    def _row_operand(self, symbol: Symbol, user: Symbol) -> int:
        """Return the register of a row-wise symbol's operand, with one element for each position.

        The register is a copy if the operand is a broadcast, a constant or a view of an input.
        """
        register_ = self._value(symbol)
        is_whole = register_ in self.inputs and source_of(symbol) is symbol
        return (
            register_
            if is_whole or not self._is_given(self.bases[register_])
            else self._copy(register_, user)
        )

    def _is_given(self, register: int) -> bool:
        return register in self.inputs or register in self.constants

    def _copy(self, register: int, symbol: Symbol) -> int:
        out = self._new(self.dtypes[register])
        self.instructions.append((assign, (register,), out, symbol))
        return out


def entering(symbol: Symbol) -> Callable[[NDArray[Any]], NDArray[Any]] | None:
    """Return the load conversion of an input, or None.

    An input of tensor_float32 is a float32 array, which the conversion rounds.
    """
    if symbol.op is ops.input and symbol.dtype.emulated:
        return casting.entering(symbol.dtype, symbol.graph.tf32)
    return None


def scalar_of(symbol: Symbol) -> NDArray[Any] | None:
    """Return the value of a 0-d constant or of `full` in its register dtype; None otherwise."""
    if symbol.op is ops.constant and not symbol.rank:
        array = symbol.attrs["value"]
    elif symbol.op is ops.full:
        array = scalar(symbol.attrs["value"], symbol.dtype, symbol.graph.tf32)
    else:
        return None
    return convert(array, symbol.dtype, machine(symbol.dtype))


def materialized(graph: Graph, steps: Sequence[Region | Call]) -> set[int]:
    """Return the indices of the symbols whose values lie in memory.

    These are the outputs, the results of row-wise symbols, the operands that live steps load, and
    the results of calls that bind dims of live steps.
    """
    indices = {symbol.index for symbol in graph.outputs}
    binders = binders_of(graph)
    for step in reversed(steps):
        symbols = [step.symbol] if isinstance(step, Call) else [*step.symbols, *step.rows]
        if binders and (symbols[0].index in indices or not isinstance(step, Call)):
            calls = [call for symbol in symbols for call in binders_used(symbol, binders)]
            indices.update([call.index for call in calls])
        if isinstance(step, Call):
            if step.symbol.index in indices:
                indices.update([arg.index for arg in step.symbol.args])
            continue
        inside = {symbol.index for symbol in step.symbols}
        sources = [arg for symbol in step.symbols for arg in symbol.args]
        for symbol in step.rows:
            indices.add(symbol.index)
            sources.append(symbol.args[0])
            indices.update([arg.index for arg in symbol.args[1:]])
        for source in map(source_of, sources):
            if source.index not in inside and scalar_of(source) is None:
                indices.add(source.index)
    return indices


@cache
def _trace_kernel(
    kernel: Callable[..., Any],
    attrs: Attributes,
    dtypes: tuple[Storage, ...],
    result: Storage,
    bits: bool,
) -> KernelTrace:
    return trace(partial(kernel, **dict(attrs)) if attrs else kernel, dtypes, result, bits)


class Placed:
    """A step that raises a refusal of its operands with the source line of its symbol."""

    def __init__(self, function: Callable[..., Any], symbol: Symbol) -> None:
        self.function, self.symbol = function, symbol

    def __call__(self, *args: Any) -> None:
        """Run the step."""
        try:
            self.function(*args)
        except REFUSAL_ERRORS as error:
            raise refused(error, self.symbol) from None
