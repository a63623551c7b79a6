"""Instruction selection for machine code: each conversion stays whole, and kernels are traced."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.public import DType, Op, Symbol, ops
from graphir.runtime.native.assembly import ConstantTable, where
from graphir.runtime.native.row_reductions import PLACES
from graphir.runtime.program.codegen.casting import register
from graphir.runtime.program.codegen.instructions import Attributes, RegionCode, entering, scalar_of
from graphir.runtime.program.codegen.tracing import (
    KernelTrace,
    Storage,
    TracedKernel,
    UfuncStep,
    UntraceableError,
)
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Region, row_axes, source_of
from graphir.semantics import special_functions as functions
from graphir.semantics.evaluation import machine
from graphir.semantics.kernels import (
    KERNEL_TABLES,
    PRIMITIVES,
    ArrayPrimitives,
    KernelTable,
    gelu_kernel,
    of_float32,
    rounded_table,
)
from graphir.semantics.rounded_functions import rounded_erf


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


class NarrowFunction(NamedTuple):
    """A function of float32 values that are exact in a narrower dtype: a table of its results.

    The table has the result for each pattern of the upper 16 bits of a float32, in which all
    narrower floats but float16 are exact, or for each pattern of a float16.
    """

    table: ConstantTable
    half: bool


@cache
def _narrow_function(op: Op, attributes: Attributes, half: bool, functions: str) -> NarrowFunction:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    if half:
        x = patterns.view(np.float16).astype(np.float32)
    else:
        x = (patterns.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        results = np.asarray(KERNEL_TABLES[functions][op.name](x, **dict(attributes)))
    results[np.isnan(results)] = np.nan  # with spare bits: a rounding keeps it
    return NarrowFunction(ConstantTable.of(results), half)


def _power(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Return x to the power y, as the kernel of `pow` does: a float with exponent 2 is x * x.

    No integer exponent in a region is negative (see `cutting`).
    """
    power = np.power(x, y)
    return where(np.equal(y, 2.0), np.multiply(x, x), power) if x.dtype.kind == "f" else power


def _take(values: NDArray[Any], places: Any) -> Any:
    return places.tracer.emit(ConstantTable.of(values), [places], values.dtype)


def _part(function: Callable[..., Any], x: Any) -> Any:
    return x.tracer.emit(function, [x], np.empty(0, x.dtype).real.dtype)


def as_complex(x: TracedKernel, y: TracedKernel) -> Any:
    """Return the complex numbers with real parts x and imaginary parts y, as a traced step."""
    dtype = np.dtype(f"c{2 * x.dtype.itemsize}")
    return x.tracer.emit(as_complex, [x, y], dtype)


class NativePrimitives(ArrayPrimitives):
    """The namespace of primitives for decompositions in machine code."""

    def pow(self, x: NDArray[Any], y: NDArray[Any]) -> Any:
        """Return a power of floats; NumPy runs integers, because the kernel may refuse them."""
        if x.dtype.kind in "iu":
            raise UntraceableError
        return _power(x, y)


def fused_multiply_add(x: TracedKernel | float, y: TracedKernel | float, z: Any) -> Any:
    """Return x * y + z as a traced step, with one rounding where the processor has such code."""
    tracer = next(term.tracer for term in (x, y, z) if isinstance(term, TracedKernel))
    args = [tracer.read(term, _FLOAT64) for term in (x, y, z)]
    return tracer.emit(fused_multiply_add, args, _FLOAT64)


_FLOAT64 = np.dtype(np.float64)
_PRIMITIVES = PRIMITIVES | {
    "pow": _power,
    "erf": partial(
        of_float32,
        partial(rounded_erf, fma=fused_multiply_add),
        partial(functions.erf_by, _take),
    ),
    "gelu": partial(gelu_kernel, partial(functions.gelu_by, _take)),
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "real": partial(_part, np.real),
    "imag": partial(_part, np.imag),
    "as_complex": as_complex,
}
_TABLES = {
    "numpy": KernelTable(_PRIMITIVES, NativePrimitives),
    "rounded": rounded_table(_PRIMITIVES, NativePrimitives, fused_multiply_add, _take),
}
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
    settings = [(symbol.graph.tf32, symbol.graph.functions) for symbol in symbols[:1]]
    return len(region.symbols), region.axes, *settings, *entries


class NativeCode(RegionCode):
    """The instructions of a region for code generation (see RegionCode).

    `results` are the registers that the kernel stores: the outs, then the `buffered` ones, which
    are operands of row-wise symbols and neither outs nor inputs. `sums` are the registers that the
    kernel reduces row by row, with the reductions' names. `sizes` are the bytes of an element of
    the results and of the reductions. `places` are the symbols in memory: inputs, outs and row-wise
    symbols. The kernel is `alone` if it computes all row-wise symbols without NumPy.
    """

    tables: Mapping[str, Mapping[str, Callable[..., Any]]] = _TABLES

    def __init__(self, region: Region, materialized: Collection[int]) -> None:
        super().__init__(region, materialized, bits=False)
        output_bases = {self.bases[register] for register in self.outs.values()}
        sums = [(register, symbol.op.name) for symbol, register in self.rows if is_reduced(symbol)]
        self.sums = list(dict.fromkeys(sums))
        self.has_several_rows = len(region.shape) > (region.axes or 1)
        others = [register for symbol, register in self.rows if not is_reduced(symbol)]
        self.buffered = [
            register
            for register in dict.fromkeys(others)
            if self.bases[register] not in output_bases and register not in self.inputs
        ]
        self.results = [*self.outs.values(), *self.buffered]
        sum_dtypes = [self.sum_dtype(*reduction) for reduction in self.sums]
        result_dtypes = [self.dtypes[register] for register in self.results]
        self.sizes = (
            tuple([dtype.itemsize for dtype in result_dtypes]),
            tuple([dtype.itemsize for dtype in sum_dtypes]),
        )
        self.alone = [symbol.dtype.storage for symbol, _ in self.rows] == sum_dtypes
        self.places = [*self.inputs.values(), *self.outs, *[symbol for symbol, _ in self.rows]]

    @property
    def calls(self) -> list[tuple[Any, str]]:
        """The functions of the instructions, with the code of the dtype of their first operand."""
        dtypes = self.dtypes
        return [
            (function, dtypes[args[0]].char) for function, args, *_ in self.instructions if args
        ]

    def sum_dtype(self, register: int, name: str) -> Storage:
        """Return the dtype of what the kernel stores for a reduction."""
        return np.dtype(np.int64) if name in PLACES else self.dtypes[register]

    def register(self, symbol: Symbol) -> int:
        """Return the register of a symbol of the region."""
        return self._value(symbol)

    def _add(self, symbols: Sequence[Symbol]) -> None:
        """Append the instructions of symbols; costly functions of narrow values are look-ups."""
        inside = set(symbols)
        for symbol in symbols:
            narrow = self._narrow_operand(symbol) if symbol.args[0] in inside else None
            if narrow is None:
                super()._add([symbol])
                continue
            single = np.dtype(np.float32)
            attributes = tuple(symbol.attrs.items())
            function: Any = _narrow_function(
                symbol.op, attributes, narrow is DType.float16, symbol.graph.functions
            )
            trace = KernelTrace(
                (UfuncStep(function, ((0, single),), single),), (1, single), (), False
            )
            result = self._run(trace, [self._value(symbol.args[0])], symbol)
            self._values[symbol] = result
            self._spare[result] = DType.float32.mantissa_bits - 1

    def _narrow_operand(self, symbol: Symbol) -> DType | None:
        """Return the narrow dtype in which all operands of a costly function are exact, if any."""
        operand = symbol.args[0]
        if symbol.op.kind != "elementwise" or len(symbol.args) > 1 or operand.op is not ops.cast:
            return None
        source, single = operand.args[0].dtype, DType.float32
        is_narrow = source.is_float and source.bits <= _NARROW and source.exact_in(single)
        if not is_narrow or (symbol.dtype, operand.dtype) != (single, single):
            return None
        trace = self._trace_op(
            symbol.op, tuple(symbol.attrs.items()), [single.storage], symbol.dtype
        )
        functions_called = {function for function, _, _ in trace.steps}
        if len(trace.steps) == 1 and functions_called <= {np.exp, np.log}:
            return None
        is_costly = len(trace.steps) > COST.LONG_FUNCTION or any(
            function in _LOOPS or isinstance(function, ConstantTable)
            for function in functions_called
        )
        return source if is_costly else None

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


_NARROW = 16
"""The most bits of a dtype with a table of results."""

_LOOPS = frozenset(
    {
        *(np.exp, np.expm1, np.log, np.log1p, np.log2, np.log10, np.cbrt, np.sin, np.cos, np.tan),
        *(np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh),
        *(np.arcsinh, np.arccosh, np.arctanh),
    }
)
"""The ufuncs that take longer than a look-up in a table, on their own or, exp and log, with the
steps around them: native, W2 in bfloat16 and float16."""


def is_reduced(symbol: Symbol) -> bool:
    """Whether machine code reduces the rows of a symbol: see row_reductions.py."""
    name, dtype = symbol.op.name, symbol.args[0].dtype
    if not row_axes(symbol):
        return False
    if name in ("sum", "mean"):
        return dtype is not DType.bool and not dtype.is_complex
    if name in ("max", "min", *PLACES):
        return register(dtype).kind in "iu" or register(dtype).char in "fd"
    return name in ("any", "all") and dtype is DType.bool


def _conversion_trace(
    conversion: NativeConversion, source: Storage, target: Storage
) -> KernelTrace:
    if conversion.kind != "cast" and source == target:
        return KernelTrace((), (0, source), (), False)
    function: Any = conversion
    return KernelTrace((UfuncStep(function, ((0, source),), target),), (1, target), (), True)
