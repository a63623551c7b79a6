"""Instruction selection for machine code: each conversion stays whole, and kernels are traced."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Symbol, ops
from graphir.semantics import special_functions as functions
from graphir.semantics.evaluation import machine
from graphir.semantics.kernel_table import KernelTable
from graphir.semantics.kernels import PRIMITIVES, ArrayPrimitives, gelu_kernel
from runtime.native.vectors import ConstantTable, where
from runtime.program.codegen.casting import register
from runtime.program.codegen.instructions import RegionCode, entering, scalar_of
from runtime.program.codegen.tracing import KernelTrace, Storage, UfuncStep, UntraceableError
from runtime.program.cutting import Region, source_of


class NativeConversion(NamedTuple):
    """A conversion of one operand: `kind` is "load" from storage, "store" to storage, or "cast".

    A cast is between registers, each of which holds the values of its dtype exactly. With `quiet`,
    all bits of a NaN that the rounding drops are 0.
    """

    kind: str
    source: DType
    target: DType
    tf32: str = "even"
    quiet: bool = False


def _power(x: Any, y: Any) -> Any:
    """Return x to the power y, as the kernel of `pow` does: a float with exponent 2 is x * x.

    No integer exponent in a region is negative (see `cutting`).
    """
    power = np.power(x, y)
    return where(np.equal(y, 2.0), np.multiply(x, x), power) if x.dtype.kind == "f" else power


def _take(values: NDArray[Any], places: Any) -> Any:
    return places.tracer.emit(ConstantTable.of(values), [places], values.dtype)


def _part(function: Callable[..., Any], x: Any) -> Any:
    return x.tracer.emit(function, [x], np.empty(0, x.dtype).real.dtype)


def as_complex(x: Any, y: Any) -> Any:
    """Return the complex numbers with real parts x and imaginary parts y, as a traced step."""
    dtype = np.dtype(f"c{2 * x.dtype.itemsize}")
    return x.tracer.emit(as_complex, [x, y], dtype)


class NativePrimitives(ArrayPrimitives):
    """The namespace of primitives for decompositions in machine code."""

    def pow(self, x: Any, y: Any) -> Any:
        """Return a power of floats; NumPy runs integers, because the kernel may refuse them."""
        if x.dtype.kind in "iu":
            raise UntraceableError
        return _power(x, y)


_KERNELS: Mapping[str, Callable[..., Any]] = KernelTable(
    PRIMITIVES
    | {
        "pow": _power,
        "erf": partial(functions.erf_by, _take),
        "gelu": partial(gelu_kernel, partial(functions.gelu_by, _take)),
        "atan2": np.arctan2,
        "hypot": np.hypot,
        "logaddexp": np.logaddexp,
        "real": partial(_part, np.real),
        "imag": partial(_part, np.imag),
        "as_complex": as_complex,
    },
    NativePrimitives,
)
"""The kernels of ops; a kernel that cannot be traced has a traceable replacement."""


def structure(region: Region, materialized: Collection[int]) -> tuple[Any, ...]:
    """Return a key of the code of a region; regions with equal keys have equal code.

    The key has the ops with their attributes and dtypes, which results lie in memory, and for each
    operand the number of the symbol or of the input, or the value of a scalar.
    """
    places: dict[int, Any] = {}
    entries: list[Any] = []
    symbols = (*region.symbols, *region.rows)
    for k, symbol in enumerate(symbols):
        args: list[Any] = []
        for arg in symbol.args:
            source = source_of(arg)
            place = places.get(source.index)
            if place is None:
                value = scalar_of(source)
                loaded = source.op is ops.input, source.rank > 0
                place = loaded if value is None else (value.dtype, value.tobytes())
                place = places[source.index] = (len(places), *place)
            args.append((place, source.dtype, source is arg))
        places[symbol.index] = k
        attrs = [(name, repr(value)) for name, value in symbol.attrs.items()]
        entries.append((symbol.op, symbol.dtype, symbol.index in materialized, *attrs, *args))
    return len(region.symbols), region.axes, *entries


class NativeCode(RegionCode):
    """The instructions of a region for code generation (see RegionCode).

    `results` are the registers that the kernel stores: the outs, then the `buffered` ones, which
    are operands of row-wise symbols and neither outs nor inputs. `sums` are the registers that the
    kernel reduces row by row, with the reductions' names. `sizes` are the bytes of an element of
    the results and of the reductions. `places` are the symbols in memory: inputs, outs and row-wise
    symbols. The kernel is `alone` if it computes all row-wise symbols without NumPy.
    """

    kernels = _KERNELS

    def __init__(self, region: Any, materialized: Any) -> None:
        super().__init__(region, materialized, bits=False)
        output_bases = {self.bases[register] for register in self.outs.values()}
        sums = [(register, each.op.name) for each, register in self.rows if is_reduced(each)]
        self.sums = list(dict.fromkeys(sums))
        others = [register for symbol, register in self.rows if not is_reduced(symbol)]
        self.buffered = [
            register
            for register in dict.fromkeys(others)
            if self.bases[register] not in output_bases and register not in self.inputs
        ]
        self.results = [*self.outs.values(), *self.buffered]
        sum_dtypes = [self.dtypes[register] for register, _ in self.sums]
        result_dtypes = [self.dtypes[register] for register in self.results]
        self.sizes = (
            tuple([each.itemsize for each in result_dtypes]),
            tuple([each.itemsize for each in sum_dtypes]),
        )
        self.alone = [symbol.dtype.storage for symbol, _ in self.rows] == sum_dtypes
        self.places = [*self.inputs.values(), *self.outs, *[symbol for symbol, _ in self.rows]]

    def _load(self, symbol: Symbol) -> KernelTrace:
        dtype = symbol.dtype
        kind, source = ("cast", DType.float32) if entering(symbol) else ("load", dtype)
        conversion = NativeConversion(kind, source, dtype, self.tf32)
        return _conversion_trace(conversion, dtype.storage, register(dtype))

    def _store(self, dtype: DType) -> KernelTrace:
        return _conversion_trace(
            NativeConversion("store", dtype, dtype), register(dtype), dtype.storage
        )

    def _cast(self, source: DType, target: DType, spare: int) -> KernelTrace:
        quiet = spare >= DType.float32.mantissa_bits - target.mantissa_bits
        conversion = NativeConversion("cast", source, target, self.tf32, quiet)
        if machine(source) is machine(target) and source.exact_in(target):
            return KernelTrace((), (0, register(source)), (), False)
        return _conversion_trace(conversion, register(source), register(target))


def is_reduced(symbol: Symbol) -> bool:
    """Whether machine code reduces the rows of a symbol: see `runtime.native.rows`."""
    name, dtype = symbol.op.name, symbol.args[0].dtype
    if name in ("sum", "mean"):
        return dtype is not DType.bool and not dtype.is_complex
    if name in ("max", "min"):
        return register(dtype).kind in "iu" or register(dtype).char in "fd"
    return name in ("any", "all") and dtype is DType.bool


def _conversion_trace(
    conversion: NativeConversion, source: Storage, target: Storage
) -> KernelTrace:
    if conversion.kind != "cast" and source == target:
        return KernelTrace((), (0, source), (), False)
    function: Any = conversion
    return KernelTrace((UfuncStep(function, ((0, source),), target),), (1, target), (), True)
