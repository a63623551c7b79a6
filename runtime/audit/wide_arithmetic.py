"""Wide arithmetic: ops and casts on float64, complex128 and exact integers, as an audit's wide run.

Floats are float64 and complex numbers complex128. Integers are int64. If one element does not fit,
or float64 lacks it among floats, the array is an exact one (see runtime.audit.exact_arrays). A cast
keeps its purpose only: to bool it computes `!= 0`; a user's cast of float to integer truncates, and
leaves NaN; an integer becomes float, a real number complex. A cast that merely changes the
representation leaves its values as they are, and so does a promotion of integers that float64
cannot represent. Bitwise ops, shifts and the next float have no meaning apart from a dtype: these
ops keep their dtypes, except that a left shift by all bits of a dtype shifts no bit out. The
rounding of float64 and complex128 itself is in no reported error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, is_
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.ir.op_builder import infer
from graphir.location import CAST, INTERMEDIATE
from graphir.ops import dtype_rules as signatures
from graphir.ops.dims import evaluate
from graphir.ops.op import Inference
from graphir.passes.rewriter import origins_of
from graphir.public import DType, ExecutionError, Graph, GraphirError, Symbol, ops
from graphir.runtime.audit import exact_arrays as exact
from graphir.runtime.audit.blocked_run import BlockedRun
from graphir.runtime.audit.double_double import round_numbers
from graphir.runtime.audit.exact_arrays import (
    WIDE_DTYPES,
    as_whole,
    fits_float64,
    fits_int64,
    is_exact_array,
    is_value,
    narrow,
    surely_fits_int64,
    wide_dtype,
)
from graphir.runtime.audit.exactness import is_inside, range_of, result_range
from graphir.semantics.evaluation import Evaluation, settings_of

Array: TypeAlias = NDArray[Any]

WIDE = {
    "bool": DType.bool,
    "int": DType.int64,
    "uint": DType.int64,
    "float": DType.float64,
    "complex": DType.complex128,
}
_OWN = {signatures.BITWISE, signatures.SHIFT, signatures.STEP}
_GROWING = {
    *(ops.add, ops.subtract, ops.multiply, ops.pow, ops.negative, ops.abs, ops.square),
    *(ops.sum, ops.numpy_sum, ops.prod, ops.cumulative_sum, ops.cumulative_prod),
    *(ops.matmul, ops.tensordot, ops.outer, ops.index_add),
}
"""Ops on integers whose results may exceed the range of their operands."""
OF_RUN = frozenset(("dtype", "loop"))
"""The attributes of what the program ran, which wide arithmetic does without."""
_code = attrgetter("code")


def widen(array: Array, dtype: DType) -> Array:
    """Return an array in its wide dtype; uint64 beyond int64, and objects, as they are."""
    is_unsigned = array.dtype == np.uint64
    if array.dtype == object or (is_unsigned and array.size and array.max() >= 2**63):
        return array
    return convert(array, dtype, WIDE[dtype.family])


def wide_operands(run: BlockedRun, symbol: Symbol) -> list[Array]:
    """Return the operands of a symbol in a reference run, in their wide dtypes."""
    storages = [run.graph.storage_dtype(x) for x in symbol.args]
    return [
        run.floats(x) if storage.is_inexact else widen(run.cached_value(x), storage)
        for x, storage in zip(symbol.args, storages, strict=True)
    ]


class WideArithmetic:
    """Ops in wide arithmetic under a graph's rules, with the sizes of its dims.

    `concrete` returns the inference of a symbol in the program's own dtypes.
    """

    def __init__(
        self, graph: Graph, sizes: Mapping[str, int], concrete: Callable[[Symbol], Inference]
    ) -> None:
        self.graph, self.sizes, self.concrete = graph, sizes, concrete
        self._evaluations: dict[tuple[Any, ...], tuple[Inference, Evaluation]] = {}

    def apply(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Apply a symbol's op to wide operands; raise GraphirError if the op fails.

        An op that fails on int64 values of float operands is retried on float64.
        """
        try:
            return self._apply(symbol, operands)
        except GraphirError:
            floats = floats_of(symbol, operands)
            if all(map(is_, floats, operands)):
                raise
            return self._apply(symbol, floats)

    def _apply(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        op, is_integer = symbol.op, symbol.dtype.is_integer
        if op.signature in _OWN:
            return self._of_bits(symbol, operands)
        if not is_integer and {x.dtype.char for x in operands} == {"d"}:
            return self._wide(symbol, tuple(map(wide_dtype, operands)))[1](operands)
        if not exact.keeps_complex(op):
            operands = [_as_complex(arg, x) for arg, x in zip(symbol.args, operands, strict=True)]
        if self._needs_exact_arrays(symbol, operands):
            result = self._of_exact_arrays(symbol, operands)
            if result is not None:
                return result
            operands = [round_numbers(x) for x in operands]
        if op in _GROWING and symbol.dtype.is_float:
            operands = _as_integers(operands)
        return self._of_numbers(symbol, operands)

    def _of_numbers(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Apply an op in int64 or float64, and in exact integers where these do not hold them."""
        op, dtypes = symbol.op, tuple(map(wide_dtype, operands))
        inference, evaluation = self._wide(symbol, dtypes)
        may_grow = op in _GROWING or op is ops.floor_divide
        if may_grow and inference.operands[0] is DType.int64 and not _stays_int64(symbol, operands):
            _, of_floats = self._wide(symbol, dtypes, (DType.float64,) * len(dtypes))
            estimate = of_floats(operands)
            if not surely_fits_int64(estimate):
                result = self._of_exact_arrays(symbol, operands)
                return estimate if result is None else result
        result = evaluation(operands)
        if symbol.dtype.is_integer and result.dtype == np.float64:
            if op in exact.DIVIDING:
                result = np.where((operands[1] == 0) & np.isfinite(operands[0]), 0.0, result)
            if not exact.are_close(result):
                whole = self._of_exact_arrays(symbol, operands)
                return result if whole is None else whole
        return result

    def _of_bits(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Apply an op on bits, or on neighbours, in its own dtype."""
        if symbol.op.signature is signatures.STEP:
            operands = [round_numbers(x) for x in operands]
        elif any(x.dtype == np.float64 for x in operands):  # a conversion would saturate
            self._check_elements(symbol)
            operands = [exact.objects(x) if x.dtype == np.float64 else x for x in operands]
        operands = [exact.bits_of(x) if is_exact_array(x) else x for x in operands]
        own, dtypes = self.concrete(symbol), tuple(map(wide_dtype, operands))
        evaluation = Evaluation(symbol.op, own, dtypes, self.sizes, self.graph.tf32)
        result = widen(evaluation(operands), own.type.dtype)
        return self._shifted(symbol, result, operands, own)

    def _shifted(
        self, symbol: Symbol, result: Array, operands: Sequence[Array], own: Inference
    ) -> Array:
        """Return a left shift in its own dtype; exact where a shift by all bits leaves nothing."""
        if symbol.op is not ops.left_shift:
            return result
        x, count = operands
        vanished: Array = (count >= own.type.dtype.bits) & (x != 0)
        if not vanished.any():
            return result
        self._check_elements(symbol)
        power = np.where(vanished, count, 0)
        if power.max() > exact.BITS:
            raise ExecutionError(exact.TOO_LONG)
        shifted = exact.objects(x) * 2 ** exact.objects(power)
        return narrow(np.where(vanished, shifted, exact.objects(result)))

    def _needs_exact_arrays(self, symbol: Symbol, operands: Sequence[Array]) -> bool:
        """Whether an op has exact operands, or its result may not be exact without."""
        if any(map(is_exact_array, operands)):
            return True
        op = symbol.op
        if (op in _GROWING or op in exact.DIVIDING) and symbol.dtype.is_integer:
            return not all(exact.are_close(x) for x in operands if x.dtype == np.float64)
        if op is ops.divide:
            return not all(fits_float64(x) for x in operands if x.dtype == np.int64)
        if op in exact.PARTS:
            return operands[0].dtype == np.int64
        if not (exact.selects(op) or op is ops.index_add):
            return False
        values = [x for i, x in enumerate(operands) if is_value(op, i)]
        integers = [x for x in values if x.dtype == np.int64]
        return 0 < len(integers) < len(values) and not all(map(fits_float64, integers))

    def _of_exact_arrays(self, symbol: Symbol, operands: Sequence[Array]) -> Array | None:
        """Return the result of an op as an exact array; None if the op takes rounded values."""
        op, is_integer = symbol.op, symbol.dtype.is_integer
        if exact.selects(op) and "value" not in symbol.attrs:
            unsigned = exact.as_unsigned(op, operands)
            if unsigned is not None:
                result = self._wide(symbol, tuple(map(wide_dtype, unsigned)))[1](unsigned)
                return widen(result, DType.uint64) if result.dtype == np.uint64 else result
        if not exact.takes(op, is_integer):
            return None
        self._check_elements(symbol)
        dtypes = (
            DType.float64 if is_value(op, i) else wide_dtype(x) for i, x in enumerate(operands)
        )
        inference, evaluation = self._wide(symbol, tuple(dtypes))
        attrs, tf32 = inference.attrs, self.graph.tf32
        settings = settings_of(op, inference.type.dtype, attrs, self.sizes, tf32)
        if "value" in settings:
            settings["value"] = attrs["value"]  # the number of the program, not rounded
        return exact.apply(op, settings, operands, evaluation, is_integer)

    def _check_elements(self, symbol: Symbol) -> None:
        """Raise ExecutionError if an object array has too many elements for an op."""
        most = exact.MOVABLE if exact.selects(symbol.op) else exact.ELEMENTS
        for x in (symbol, *symbol.args):
            if math.prod(evaluate(dim, self.sizes) for dim in x.shape) > most:
                raise ExecutionError(exact.TOO_MANY)

    def _wide(
        self,
        symbol: Symbol,
        sources: tuple[DType, ...],
        dtypes: tuple[DType, ...] | None = None,
    ) -> tuple[Inference, Evaluation]:
        """Return the cached inference and evaluation of an op on operands of wide dtypes `sources`.

        The op computes in `dtypes`, by default those of the operands; joined ones are the widest.
        """
        types = [x.type for x in symbol.args]
        key = symbol.op, symbol.attrs, *map(_code, sources), dtypes, *types
        entry = self._evaluations.get(key)
        if entry is None:
            inference = self._infer(symbol, dtypes or sources)
            evaluation = Evaluation(symbol.op, inference, sources, self.sizes, self.graph.tf32)
            entry = self._evaluations[key] = inference, evaluation
        return entry

    def _infer(self, symbol: Symbol, dtypes: tuple[DType, ...]) -> Inference:
        positions = symbol.op.signature.promoted or range(len(dtypes))
        join = max((dtypes[i] for i in positions), key=WIDE_DTYPES.index)
        types = [
            arg.type.cast(join if i in positions else WIDE[arg.dtype.family])
            for i, arg in enumerate(symbol.args)
        ]
        attrs: Mapping[str, Any] = symbol.attrs
        if not attrs.keys().isdisjoint(OF_RUN):
            attrs = {name: value for name, value in attrs.items() if name not in OF_RUN}
        return infer(self.graph.rules, symbol.op, types, attrs)


def apply_cast(symbol: Symbol, x: Array) -> Array:
    """Apply the purpose of a cast to wide values (see the module's docstring)."""
    source, target = wide_dtype(x), WIDE[symbol.dtype.family]
    if is_exact_array(x) and target is not DType.bool:
        truncates = target is DType.int64 and _truncates(symbol)
        return exact.cast_numbers(x, target is not DType.complex128, truncates)
    x = round_numbers(x)
    if source is DType.complex128 and target not in (DType.bool, DType.complex128):
        real, imaginary = np.array(np.real(x), order="C"), np.imag(x)
        if not imaginary.any():
            return apply_cast(symbol, real)
        truncates = target is DType.int64 and _truncates(symbol)
        return apply_cast(symbol, real) + 1j * imaginary if truncates else x
    if target is DType.int64 and source is DType.float64:
        return _truncate(x) if _truncates(symbol) else as_whole(x)
    if target.is_inexact and source is DType.int64:
        return convert(x, source, target) if fits_float64(x) else x
    return convert(x, wide_dtype(x), target)


def _stays_int64(symbol: Symbol, operands: Sequence[Array]) -> bool:
    """Whether the ranges of int64 operands prove that an op on integers stays inside int64."""
    range_ = result_range(symbol.op, lambda i: range_of(operands[i]), lambda i: operands[i].size)
    return is_inside(range_, DType.int64)


def floats_of(symbol: Symbol, operands: Sequence[Array]) -> list[Array]:
    """Return operands of an op with int64 values of float symbols as float64."""
    return [
        convert(x, DType.int64, DType.float64)
        if arg.dtype.family == "float" and x.dtype == np.int64
        else x
        for arg, x in zip(symbol.args, operands, strict=True)
    ]


def _as_complex(symbol: Symbol, x: Array) -> Array:
    """Convert integers of a complex symbol to complex128, for arithmetic, which rounds them."""
    return round_numbers(x).astype(np.complex128) if symbol.dtype.is_complex else x


def _as_integers(operands: Sequence[Array]) -> Sequence[Array]:
    """Return operands as int64 if some are integers that float64 lacks and the others are whole."""
    floats = [x for x in operands if x.dtype == np.float64]
    if len(floats) in (0, len(operands)):
        return operands
    wholes = [as_whole(x) for x in operands]
    return operands if any(x.dtype == np.float64 for x in wholes) else wholes


def _truncate(x: Array) -> Array:
    """Truncate floats: int64 if all values fit, else float64, as for NaN, which is no integer."""
    whole = np.trunc(x)
    return whole.astype(np.int64) if fits_int64(whole) else whole


def _truncates(cast: Symbol) -> bool:
    """Whether a cast to integers truncates by intent, and has no integers that kept a fraction."""
    return is_written(cast) and not cast.args[0].dtype.is_integer


def is_written(cast: Symbol) -> bool:
    """Whether the user wrote a cast, or a library's function has it, for one of its uses."""
    origins = origins_of(cast)
    return any(x.rule == CAST or x.in_call or x.operand == INTERMEDIATE for x in origins)
