"""Lazy symbols: recorded and typed at once, computed on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.errors import Vocabulary
from graphir.ir.op_builder import OpBuilder
from graphir.location import Source
from graphir.ops.attribute_record import NO_ATTRIBUTES, AttributeRecord
from graphir.ops.op import Inference, Op
from graphir.promotion.scalars import WEAK, fits
from graphir.public import DType, GraphirError, PromotionRules, Symbol, TensorType, ops, rules
from graphir.semantics.evaluation import contiguous

ARRAYS = Vocabulary("astype(x, {dtype})", "asarray({value}, dtype={dtype})")
"""The spelling of fixes in error messages of the namespace."""

PENDING = 1 << 19
"""The bytes that a pending op counts as, which bounds the length of pending chains."""

_NUMBERS = 1 << 10
"""The most cached 0-d arrays of Python numbers; a further number clears the cache."""


class Lazy(Symbol):
    """A symbol with an optional value; with a value it counts as an input and has no operands.

    `held_bytes` is an upper bound of the bytes that the symbol keeps alive while it is pending.
    """

    __slots__ = ("held_bytes", "value")

    def __init__(
        self,
        tape: Tape,
        op: Op,
        args: tuple[Lazy, ...],
        attrs: AttributeRecord,
        type: TensorType,
        source: Source,
        value: NDArray[Any] | None = None,
    ) -> None:
        self.graph = cast(Any, tape)
        self.op = op
        self.args = args
        self.attrs = attrs
        self.type = type
        self.source = source
        self.index = next(_PLACES)
        self.value = value
        held_bytes = PENDING
        for arg in args:
            value_ = arg.value
            held_bytes += arg.held_bytes if value_ is None else value_.nbytes
        self.held_bytes = held_bytes

    def settle(self, value: NDArray[Any]) -> None:
        """Store the computed value and release the operands."""
        self.value = value  # first: a thread that sees no operands must see a value
        self.args = ()


_PLACES = count()
"""Indices in the order of recording, so that operands precede their users."""


class Tape:
    """The recorder of all arrays of the namespace, in all threads.

    The tape is no graph and has no list of symbols: a symbol lives as long as an Array or a pending
    symbol refers to it.
    """

    name, tf32 = "array_api", "even"

    def __init__(self) -> None:
        self.builder = OpBuilder(rules("array_api"), ARRAYS)
        self._numbers: dict[Any, NDArray[Any]] = {}

    @property
    def rules(self) -> PromotionRules:
        """The rule set of the standard."""
        return self.builder.rules

    def concrete_dtype(self, dtype: DType) -> DType:
        """Return the dtype of the values of a possibly weak dtype."""
        return self.rules.concrete_dtype(dtype)

    def emit(self, op: Op, args: tuple[Any, ...], attrs: Mapping[str, Any]) -> Lazy:
        """Return a pending symbol with its inferred type.

        Raises PromotionError, ShapeError or GraphError for operands that the op refuses.
        """
        try:
            inference = self.builder.infer(op, args, attrs)
        except GraphirError as error:
            raise self.builder.refuse(error, op, args, _getframe(1)) from None
        site = self.builder.locate(_getframe(1))
        return Lazy(self, op, args, inference.attrs, inference.type, site)

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Lazy:
        """Record an op on symbols and Python scalars; the scalars take the op's operand dtypes."""
        for operand in operands:
            if operand.__class__ is not Lazy:
                return self._beside_numbers(op, operands, attrs)
        return self.emit(op, tuple(operands), attrs)

    def constant(self, value: NDArray[Any]) -> Lazy:
        """Return a symbol with this value, an array that the caller must not modify."""
        array = contiguous(value)
        type_ = TensorType(self.rules.supported(DType.from_numpy(array.dtype)), array.shape)
        site = self.builder.locate(_getframe(1))
        return Lazy(self, ops.input, (), NO_ATTRIBUTES, type_, site, array)

    def name_of(self, symbol: Symbol) -> str:
        """Return the name of a symbol in messages: % and its index."""
        return f"%{symbol.index}"

    def _beside_numbers(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Lazy:
        if not any(operand.__class__ is Lazy for operand in operands):
            raise TypeError(f"{op.name} of Python scalars alone; asarray(...) makes one an array")
        try:
            inference = self._infer_beside_numbers(op, operands, attrs)
            site = self.builder.locate(_getframe(1))
            pairs = zip(operands, inference.operands, strict=True)
            args = [
                operand if operand.__class__ is Lazy else self._number(operand, to, site)
                for operand, to in pairs
            ]
        except GraphirError as error:
            raise self.builder.refuse(error, op, operands, _getframe(1)) from None
        return Lazy(self, op, tuple(args), inference.attrs, inference.type, site)

    def _infer_beside_numbers(
        self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]
    ) -> Inference:
        """Infer an op on symbols and Python scalars; the scalars have weak types."""
        types = tuple(
            [
                operand.type if operand.__class__ is Lazy else _WEAK[_kind(operand)]
                for operand in operands
            ]
        )
        return self.builder.infer_of(op, types, attrs)

    def _number(self, number: complex, dtype: DType, site: Source) -> Lazy:
        # 0.0 == -0.0, and complex parts have signed zeros too: neither is a safe cache key.
        cacheable = bool(number) and not isinstance(number, complex)
        key = dtype.code, number.__class__, number
        value = self._numbers.get(key) if cacheable else None
        if value is None:
            value = self._array(number, dtype)
            if cacheable:
                if len(self._numbers) >= _NUMBERS:
                    self._numbers.clear()
                self._numbers[key] = value
        return Lazy(self, ops.input, (), NO_ATTRIBUTES, TensorType(dtype), site, value)

    def _array(self, number: complex, dtype: DType) -> NDArray[Any]:
        if dtype.is_integer and not fits(number, dtype):
            raise self.rules.misfit(number, dtype)
        with np.errstate(all="ignore"):  # a value beyond the float range becomes inf
            return np.array(number, dtype.storage)


_WEAK = {kind: TensorType(dtype) for kind, dtype in WEAK.items()}


def _kind(number: complex) -> type:
    """Return the Python scalar type of a number or of a subclass, as np.float64 of float."""
    kind = number.__class__
    return kind if kind in WEAK else next(each for each in WEAK if isinstance(number, each))


TAPE = Tape()
