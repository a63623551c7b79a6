"""The reference run of an audit: a graph in wide arithmetic, without narrow rounding or wrapping.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter, is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, ExecutionError, GraphirError, Symbol, ops
from graphir.conversions import convert
from graphir.ir.op_builder import infer
from graphir.location import CAST, INTERMEDIATE
from graphir.ops import dtype_rules as signatures
from graphir.ops.dims import evaluate
from graphir.ops.op import Inference
from graphir.passes.analysis.casts import StepLoss
from graphir.passes.rewriter import is_conversion, origins_of
from graphir.runtime.audit import exact_arrays as exact
from graphir.runtime.audit.blocked_run import BlockedRun, View
from graphir.runtime.audit.exact import numbers, round_numbers
from graphir.runtime.audit.exact_arrays import (
    WIDE_DTYPES,
    as_whole,
    fits_float64,
    is_exact_array,
    is_value,
    narrow,
    numbers_at,
    surely_fits_int64,
    wide_dtype,
)
from graphir.runtime.audit.exactness import is_wide, keeps_equal
from graphir.runtime.audit.library_calls import CallResult, CallRun, disagreement, is_choice
from graphir.runtime.audit.measuring import blocks
from graphir.runtime.audit.opaque import NO_VALUE
from graphir.semantics.evaluation import Evaluation, settings_of

if TYPE_CHECKING:
    from typing import Self

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
_FLOAT64 = {"d"}
_DIVIDING = {ops.floor_divide, ops.remainder, ops.fmod}
OF_RUN = frozenset(("dtype", "loop"))
"""The attributes of what the program ran, which wide arithmetic does without."""


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


_code = attrgetter("code")


NOTHING_ELSE: Mapping[str, Any] = MappingProxyType({})

TOTAL: frozenset[StepLoss] = frozenset(("cancellation", "invalid"))
"""The losses that are measured by the whole error of a step: its operands' and its own."""


class Effect(NamedTuple):
    """The effect of a cast or a lossy step: `before`, of `source`, became `after`, of `target`."""

    before: Array
    after: Array
    source: DType
    target: DType


class WideRun(BlockedRun):
    """A run in wide arithmetic, in step with a reference run `beside`, which has not started.

    The wide run takes from `beside` the inputs, the constants and the results of other ops without
    operands. It also takes the value of an op that fails on wide operands, such as an index that is
    in range only because it wrapped. `literals` maps the index of a constant to the Python number
    that its dtype rounds; `pins` and `masks` are as in `Beyond`. `kinds` has
    the kinds of the lossy steps, by symbol index (see runtime.audit.losses). `lost_places` maps the
    indices of symbols without a value in wide arithmetic to the reasons, `equal_places` has those
    of symbols that facts prove to be equal in both runs. `calls` has the results of library calls,
    and `choices` those results that wide arithmetic would choose otherwise (see
    runtime.audit.library_calls).
    """

    def __init__(
        self,
        beside: BlockedRun,
        literals: Mapping[int, complex],
        pins: Mapping[int, Symbol],
        masks: Mapping[Symbol, Symbol],
    ) -> None:
        self.beside, self.literals, self.pins, self.masks = beside, literals, pins, masks
        self._pin_places = {pin.index for pin in pins.values()}
        graph = beside.graph
        arrays = [self._widen(x) for x in graph.inputs]
        super().__init__(graph, arrays, beside.sizes, beside.kept_places)
        self.kinds: Mapping[int, StepLoss] = MappingProxyType({})
        self.lost_places: dict[int, str] = {}
        self.choices: set[int] = set()
        self._locals: dict[int, Array] = {}
        self.set_calls({}, CallRun({}))
        self.equal_places = {x.index for x in graph.inputs}
        self._wide_evaluations: dict[tuple[Any, ...], tuple[Inference, Evaluation]] = {}

    def set_calls(self, calls: Mapping[int, CallResult], reference: CallRun) -> None:
        """Set the symbols that are results of library calls, and the calls of the reference run."""
        self.calls, self.call_run, self._local_run = calls, CallRun(calls), CallRun(calls)
        self._reference_calls = reference

    def block(self, operands: Iterable[Symbol], view: View) -> Self:
        """Return a run of one block, with one of the reference run beside it."""
        operands = list(operands)
        run = super().block(operands, view)
        run.beside = self.beside.block(operands, view)
        run.equal_places = set(self.equal_places)
        return run

    def free(self, places: Iterable[int]) -> None:
        """Free values of a block in both runs."""
        super().free(places)
        self.beside.free(places)

    def reads(self, symbol: Symbol) -> Iterable[Symbol]:
        """Return the symbols whose wide values the wide value of a symbol is computed from."""
        return () if self.is_equal(symbol) else symbol.args

    def is_equal(self, symbol: Symbol) -> bool:
        """Whether facts prove that both runs have equal values of a symbol.

        The reference run has the value. The answer is right for the operands before the symbol.
        """
        if symbol.index in self.equal_places:
            return True
        if symbol.index in self._pin_places or symbol.index in self.literals:
            return False
        if not all(x.index in self.equal_places for x in symbol.args):
            return False
        if symbol.index in self.calls and not self._computes_wide(symbol):
            return False
        if symbol.args and not keeps_equal(symbol, self.beside):
            return False
        self.equal_places.add(symbol.index)
        return True

    def _computes_wide(self, symbol: Symbol) -> bool:
        """Whether a call has no operand that it may convert to float64 inside, as integers are."""
        if self._reference_calls.dtype is not None:
            return False
        storages = map(self.graph.storage_dtype, symbol.args)
        return all(is_wide(x) or x is DType.bool for x in storages)

    def walk(self, keeps: bool = False) -> Iterator[Symbol]:
        """Yield each live symbol after the reference run and then this run have computed it."""
        walks = self.beside.walk(keeps), super().walk(keeps)
        for _, symbol in zip(*walks, strict=True):
            yield symbol

    def value(self, symbol: Symbol) -> Array:
        """Compute the wide value of a symbol from its operands' wide values."""
        if symbol.index in self.literals:
            number = _as_array(self.literals[symbol.index])
            return convert(number, wide_dtype(number), WIDE[symbol.dtype.family])
        if symbol.args and not self.is_equal(symbol):
            is_call = symbol.index in self.calls
            operands = [(self._decided if is_call else self.cached_value)(x) for x in symbol.args]
            try:
                result = self.compute(symbol, operands)
                return self._checked(symbol, operands, result) if is_call else result
            except GraphirError as error:
                if is_call and is_choice(symbol):  # of another number of elements
                    self.choices.add(symbol.index)
                    return self._widen(symbol)
                is_limit = error.problem in (exact.TOO_MANY, exact.TOO_LONG)
                reason = error.summary if is_call or is_limit else NO_VALUE
                self.lost_places[symbol.index] = reason
        return self._widen(symbol)

    def _decided(self, symbol: Symbol) -> Array:
        """Return an operand of a call: bools are choices, of which the run's count."""
        value = self.cached_value(symbol)
        if symbol.dtype is not DType.bool or symbol.index in self.equal_places:
            return value
        actual = self._widen(symbol)
        if not np.array_equal(value, actual):
            self.choices.add(symbol.index)
        return actual

    def _checked(self, symbol: Symbol, operands: Sequence[Array], result: Array) -> Array:
        """Return a wide result of a call; ExecutionError if it is no result of the same call.

        Of choices, the answer is the run's (see runtime.audit.library_calls).
        """
        actual, local = self._widen(symbol), result
        if not all(x.index in self.equal_places for x in symbol.args):
            local = self._local_run.local(symbol, partial(wide_operands, self.beside))
            if not is_choice(symbol) and self.call_run.differs_by_choice(
                symbol, operands, self._local_run
            ):
                raise ExecutionError("chooses otherwise on operands without errors")
        reference, call = self._reference_calls, self.calls[symbol.index].call
        difference = reference.failures.get(symbol.index)
        if reference.dtype is None:
            difference = difference or disagreement(local, actual, symbol, call.precision)
        if difference:
            raise ExecutionError(difference)
        self._locals[symbol.index] = local
        if not is_choice(symbol):
            return result
        if not np.array_equal(result, actual):
            self.choices.add(symbol.index)
        return actual

    def _widen(self, symbol: Symbol) -> Array:
        """Return the value of a symbol in the reference run, in its wide dtype."""
        beside = self.beside
        return widen(beside.cached_value(symbol), beside.graph.storage_dtype(symbol))

    def compute(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Apply a symbol's op to wide operands; raise GraphirError if the op fails.

        An op that fails on int64 values of float operands is retried on float64.
        """
        try:
            return self._compute(symbol, operands)
        except GraphirError:
            floats = [_as_float(arg, x) for arg, x in zip(symbol.args, operands, strict=True)]
            if all(map(is_, floats, operands)):
                raise
            return self._compute(symbol, floats)

    def _compute(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        if symbol.index in self._pin_places:
            return operands[-1]
        if is_conversion(symbol):
            return self.cast(symbol, operands[0])
        if symbol.index in self.calls:
            operands = [_as_float(arg, x) for arg, x in zip(symbol.args, operands, strict=True)]
            return self.call_run.result(symbol, operands)
        if symbol.op.signature in _OWN:
            return self._of_bits(symbol, operands)
        is_plain = {x.dtype.char for x in operands} == _FLOAT64
        if not (is_plain or exact.keeps_complex(symbol.op)):
            operands = [_as_complex(arg, x) for arg, x in zip(symbol.args, operands, strict=True)]
        is_plain = is_plain and not symbol.dtype.is_integer
        if not is_plain and self._needs_exact_arrays(symbol, operands):
            result = self._of_exact_arrays(symbol, operands)
            if result is not None:
                return result
            operands = [round_numbers(x) for x in operands]
        if not is_plain and symbol.op in _GROWING and symbol.dtype.is_float:
            operands = _as_integers(operands)
        return self._of_numbers(symbol, operands)

    def _of_numbers(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Apply an op in wide arithmetic, and in exact integers where int64 does not hold them."""
        dtypes = tuple(map(wide_dtype, operands))
        inference, evaluation = self._wide(symbol, dtypes)
        may_grow = symbol.op in _GROWING or (
            symbol.op is ops.floor_divide and _has_least(operands[0])
        )
        if may_grow and inference.operands[0] is DType.int64 and not _stays_small(symbol, operands):
            _, of_floats = self._wide(symbol, dtypes, (DType.float64,) * len(dtypes))
            estimate = of_floats(operands)
            if not surely_fits_int64(estimate):
                result = self._of_exact_arrays(symbol, operands)
                return estimate if result is None else result
        result = evaluation(operands)
        if symbol.dtype.is_integer and result.dtype == np.float64:
            if symbol.op in _DIVIDING:
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
        if (op in _GROWING or op in _DIVIDING) and symbol.dtype.is_integer:
            return not all(exact.are_close(x) for x in operands if x.dtype == np.float64)
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

    def local(self, symbol: Symbol) -> Array:
        """Return the wide result of a symbol's op on the operands of the reference run.

        If the op fails on them, or the operands and the wide run's are equal, the result is that of
        the wide run.
        """
        if symbol.index in self._locals:
            return self._locals[symbol.index]
        if all(x.index in self.equal_places for x in symbol.args):
            return self.cached_value(symbol)
        try:
            return self.compute(symbol, wide_operands(self.beside, symbol))
        except GraphirError:
            return self.cached_value(symbol)

    def cast(self, symbol: Symbol, x: Array) -> Array:
        """Apply the purpose of a cast to wide values (see the module's docstring)."""
        source, target = wide_dtype(x), WIDE[symbol.dtype.family]
        if is_exact_array(x) and target is not DType.bool:
            truncates = target is DType.int64 and _truncates(symbol)
            return exact.cast_numbers(x, target is not DType.complex128, truncates)
        x = round_numbers(x)
        if source is DType.complex128 and target not in (DType.bool, DType.complex128):
            real, imaginary = np.array(np.real(x), order="C"), np.imag(x)
            if not imaginary.any():
                return self.cast(symbol, real)
            truncates = target is DType.int64 and _truncates(symbol)
            return self.cast(symbol, real) + 1j * imaginary if truncates else x
        if target is DType.int64 and source is DType.float64:
            return _truncate(x) if _truncates(symbol) else as_whole(x)
        if target.is_inexact and source is DType.int64:
            return convert(x, source, target) if fits_float64(x) else x
        return convert(x, wide_dtype(x), target)

    def effect(self, site: Symbol) -> Effect:
        """Return a cast's input and output in the reference run; a number and its constant else."""
        after, to = self.beside.cached_value(site), self.graph.storage_dtype(site)
        if site.index in self.kinds:
            local = self.local(site)
            return Effect(local, after, wide_dtype(local), to)
        if is_conversion(site):
            (x,) = site.args
            pin = self.pins.get(site.index)
            if pin is not None:
                at, pinned_value, _ = map(self.beside.cached_value, (*pin.args[:2], site))
                after = np.where(at, pinned_value, after)
            return Effect(self.beside.cached_value(x), after, self.graph.storage_dtype(x), to)
        number = _as_array(self.literals[site.index])
        return Effect(number, after, wide_dtype(number), to)

    def masked(self, site: Symbol, effect: Effect) -> Effect:
        """Return the part of an effect that the condition of `where=` selects."""
        at = self.mask(site)
        if at is None:
            return effect
        at = np.broadcast_to(at, effect.before.shape)
        return effect._replace(before=effect.before[at], after=effect.after[at])

    def mask(self, symbol: Symbol) -> Array | None:
        """Return the mask of the elements that `where=` has computed; None for all of them."""
        mask = self.masks.get(symbol)
        return None if mask is None else self.beside.values[mask.index]

    def is_same(self, symbol: Symbol, truth: bool) -> bool:
        """Whether a symbol has equal values in both runs; for `truth`, equal zeros."""
        wide, beside = self.cached_value(symbol), self.beside.cached_value(symbol)
        parts, storage = 1 + wide_dtype(wide).is_complex, self.graph.storage_dtype(symbol)
        for at in blocks(wide.size):
            new = numbers_at(wide.reshape(-1)[at], parts)
            old = numbers(beside.reshape(-1)[at], storage, parts)
            if not (new.zero == old.zero if truth else new.identical(old)).all():
                return False
        return True

    def with_loss(self, site: Symbol, wide: Array) -> Array:
        """Return the wide value of a cast plus its loss: actual output minus the cast's purpose.

        A fraction that the user truncates is thus no loss. The loss of a step of arithmetic is its
        local loss. If the difference is not finite, the result is the actual output. The same holds
        for a number that became a constant, and for the losses in TOTAL.
        """
        before, after, source, target = self.effect(site)
        kind = self.kinds.get(site.index)
        if kind in TOTAL or (not is_conversion(site) and kind is None):
            return widen(after, target)
        if any(map(is_exact_array, (wide, before, after))) and wide.size <= exact.ELEMENTS:
            old = widen(before, source)
            purpose = old if kind else self.cast(site, old)
            return exact.with_difference(wide, purpose, widen(after, target))
        dtype = _dtype_off(round_numbers(wide), before, after, source)
        result = np.empty(wide.shape, dtype.storage)
        flat = [array.reshape(-1) for array in (wide, before, after, result)]
        for at in blocks(wide.size):
            value, old, new, out = (array[at] for array in flat)
            purpose = widen(old, source) if kind else self.cast(site, widen(old, source))
            terms = map(round_numbers, (value, purpose, widen(new, target)))
            out[:] = _off(*(convert(term, wide_dtype(term), dtype) for term in terms))
        return result

    def _wide(
        self,
        symbol: Symbol,
        sources: tuple[DType, ...],
        dtypes: tuple[DType, ...] | None = None,
        attrs: Mapping[str, Any] = NOTHING_ELSE,
    ) -> tuple[Inference, Evaluation]:
        """Return the cached inference and evaluation of an op on operands of wide dtypes `sources`.

        The op computes in `dtypes`, by default those of the operands; joined ones are the widest.
        `attrs` replace attributes of the symbol.
        """
        types = [x.type for x in symbol.args]
        key = symbol.op, symbol.attrs, *map(_code, sources), dtypes, *attrs.items(), *types
        entry = self._wide_evaluations.get(key)
        if entry is None:
            inference = self._infer(symbol, dtypes or sources, attrs)
            evaluation = Evaluation(symbol.op, inference, sources, self.sizes, self.graph.tf32)
            entry = self._wide_evaluations[key] = inference, evaluation
        return entry

    def _infer(
        self, symbol: Symbol, dtypes: tuple[DType, ...], new_attrs: Mapping[str, Any]
    ) -> Inference:
        positions = symbol.op.signature.promoted or range(len(dtypes))
        join = max((dtypes[i] for i in positions), key=WIDE_DTYPES.index)
        types = [
            arg.type.cast(join if i in positions else WIDE[arg.dtype.family])
            for i, arg in enumerate(symbol.args)
        ]
        attrs: Mapping[str, Any] = {**symbol.attrs, **new_attrs} if new_attrs else symbol.attrs
        if not attrs.keys().isdisjoint(OF_RUN):
            attrs = {name: value for name, value in attrs.items() if name not in OF_RUN}
        return infer(self.graph.rules, symbol.op, types, attrs)


def _stays_small(symbol: Symbol, operands: Sequence[Array]) -> bool:
    """Whether the sizes of int64 operands prove that a result is far inside int64's range."""
    if symbol.op not in _BOUNDED or not all(x.size for x in operands):
        return False
    sizes = [max(-int(x.min()), int(x.max())) for x in operands]
    return (sizes[0] * sizes[-1] if symbol.op is ops.multiply else sum(sizes)) < 2**62


def _has_least(x: Array) -> bool:
    """Whether int64 values have the least one, whose quotient by -1 int64 lacks."""
    return x.dtype == np.int64 and bool(x.size) and x.min() == -(2**63)


_BOUNDED = {ops.add, ops.subtract, ops.multiply, ops.negative, ops.abs}


def _fits_int64(x: Array) -> bool:
    return not x.size or bool(x.min() >= -(2.0**63) and x.max() < 2.0**63)


def _as_float(symbol: Symbol, x: Array) -> Array:
    """Convert int64 values of a float symbol to float64, for ops that take floats only."""
    if symbol.dtype.family == "float" and x.dtype == np.int64:
        return convert(x, DType.int64, DType.float64)
    return x


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
    return whole.astype(np.int64) if _fits_int64(whole) else whole


def _truncates(cast: Symbol) -> bool:
    """Whether a cast to integers truncates by intent, and has no integers that kept a fraction."""
    return is_written(cast) and not cast.args[0].dtype.is_integer


def is_written(cast: Symbol) -> bool:
    """Whether the user wrote a cast, or a library's function has it, for one of its uses."""
    origins = origins_of(cast)
    return any(x.rule == CAST or x.in_call or x.operand == INTERMEDIATE for x in origins)


def _dtype_off(wide: Array, before: Array, after: Array, source: DType) -> DType:
    """Return the wide dtype for a value plus a loss: int64 if all terms fit, else a float."""
    is_complex = any(x.dtype.kind == "c" for x in (wide, before, after))
    if is_complex or wide.dtype != np.int64 or source.is_float:
        return DType.complex128 if is_complex else DType.float64
    return DType.int64 if all(map(_fits_int64, (before, after))) else DType.float64


def _off(value: Array, exact: Array, actual: Array) -> Array:
    # If the int64 difference wraps, the sum wraps back.
    loss = actual - exact
    same = (actual == exact) | (np.isnan(actual) & np.isnan(exact))
    return np.where(same, value, np.where(np.isfinite(loss), value + loss, actual))


def _as_array(number: complex) -> Array:
    """Return a Python number as a 0-d array: int64, float64 or complex128."""
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        number = float(number)
    return np.asarray(number)
