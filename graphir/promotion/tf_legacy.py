"""The rules of TensorFlow in the mode "legacy", the default of its switch to NumPy's behaviour.

In this mode Python's binary operators and comparisons convert both operands to their np.result_type
under NumPy 2. Source: framework/override_binary_operator.py of tensorflow 2.21,
maybe_promote_tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphir.dtypes import DType
from graphir.promotion.library import Facts, LibraryRules
from graphir.promotion.numpy_ import NUMPY
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.tensorflow import SMALL, SOURCE, TENSORFLOW, TensorFlow

_WIDE = (DType.float32, DType.float64, DType.complex64, DType.complex128)
_FLOAT8 = (
    *(DType.float8_e5m2fnuz, DType.float8_e4m3fnuz, DType.float8_e4m3fn),
    DType.float8_e4m3b11fnuz,
)
_FLOATS = (DType.float4_e2m1fn, *_FLOAT8)
_SIGNED = (DType.int8, DType.int16, DType.int32, DType.int64)
_UNSIGNED = (DType.uint8, DType.uint16, DType.uint32, DType.uint64)
_OF_INT = (*_SIGNED, *_FLOATS, DType.float16, *_WIDE)
_YIELDS: dict[DType, tuple[DType, ...]] = {
    DType.bool: (DType.bfloat16, *SMALL),
    DType.int8: (DType.bfloat16, DType.float8_e5m2, *_FLOATS),
    DType.uint8: (DType.bfloat16, DType.float8_e5m2, *_FLOATS),
    DType.int2: (DType.int4, *_OF_INT),
    DType.int4: _OF_INT,
    DType.uint2: (DType.uint4, *_UNSIGNED, *_OF_INT),
    DType.uint4: (*_UNSIGNED, *_OF_INT),
    **{low: (*_FLOATS[i + 1 :], *_WIDE) for i, low in enumerate(_FLOATS)},
    DType.float8_e5m2: _WIDE,
    DType.bfloat16: _WIDE,
}
"""For each dtype, the partners to which it converts, in pairs with a dtype of ml_dtypes.

ml_dtypes registers these casts with NumPy.
"""

_BETWEEN: dict[DType, dict[DType, DType]] = {
    DType.float8_e5m2: {
        **dict.fromkeys((DType.int16, DType.uint16, DType.float16), DType.float32),
        **dict.fromkeys((*_SIGNED[2:], *_UNSIGNED[2:]), DType.float64),
    }
}
"""The pairs whose join in NumPy is a third dtype."""

_WEAK: dict[DType, dict[DType, DType]] = {
    DType.weak_int: {
        **dict.fromkeys((DType.int2, DType.int4), DType.int8),
        **dict.fromkeys((DType.uint2, DType.uint4), DType.uint8),
    },
    DType.weak_float: {
        **dict.fromkeys((DType.bfloat16, *_FLOATS), DType.float64),
        DType.float8_e5m2: DType.float32,
        **dict.fromkeys((DType.int2, DType.int4, DType.uint2, DType.uint4), DType.float16),
    },
    DType.weak_complex: dict.fromkeys((DType.bfloat16, *SMALL), DType.complex64),
}
"""The join of a Python scalar with a dtype of ml_dtypes; an int leaves a float dtype unchanged."""

_OPERATORS = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "matmul"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    }
)


_EXCEPTIONS: Facts = {
    **TensorFlow.exceptions,
    "gelu": {**TensorFlow.exceptions["gelu"], DType.bfloat16: DType.float64},
    "sort": {**TensorFlow.exceptions["sort"], DType.uint4: DType.uint8},
    "argsort": {**TensorFlow.exceptions["argsort"], DType.uint4: DType.uint8},
}
"""TensorFlow composes gelu and sort of operators, which promote: 0.5 * x of bfloat16 is float64."""


class TensorFlowLegacy(TensorFlow):
    """tf.experimental.numpy.experimental_enable_numpy_behavior(), in its default mode.

    Python's operators promote as NumPy 2 does and compute in a dtype for which TensorFlow has
    kernels. `promote` answers for the operators. Functions (maximum, where, concat, atan2, ...)
    behave as without the switch. TensorFlow has no weak tensors in this mode: `mask + 1` is int64.
    """

    instead = "numpy"
    exceptions = _EXCEPTIONS

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """Return the join, to which NumPy casts an operator's array.

        Functions follow the default mode.
        """
        if op and op not in _OPERATORS:
            return super().array(dtype, partners, op)
        return self._numpy_join([*partners, Operand(dtype)])

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return np.result_type of the operands, if TensorFlow can cast each operand to it.

        The result is never weak.
        """
        dtype = self._numpy_join(operands)
        for operand in operands:
            if operand.dtype is not dtype and not _is_cast(operand.dtype, dtype):
                why = f"they would meet in {dtype}, and TensorFlow casts no {operand.dtype} to it"
                raise self.refusal([each.dtype for each in operands], why)
        return dtype

    def _numpy_join(self, operands: Sequence[Typed]) -> DType:
        """Return np.result_type of the operands."""
        return NUMPY.concrete_dtype(LibraryRules.common(self, operands))

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Return NumPy's join; a dtype of ml_dtypes must have a join with each of the others."""
        strange = {DType.bfloat16, *SMALL}
        if not strange.intersection(dtypes):
            return NUMPY.concrete_dtype(NUMPY.join(dtypes))
        first = next(dtype for dtype in dtypes if dtype in strange)
        joins = dict.fromkeys([self._pair(first, dtype) for dtype in dtypes if dtype is not first])
        return self.join(tuple(joins)) if len(joins) > 1 else next(iter(joins))

    def _pair(self, a: DType, b: DType) -> DType:
        for low, high in ((a, b), (b, a)):
            if high is low or high in _YIELDS.get(low, ()):
                return high
            between = _WEAK.get(low, {}).get(high) or _BETWEEN.get(low, {}).get(high)
            if between:
                return between
            if low is DType.weak_int and high.is_float:
                return high
        if not {a, b} & {DType.bfloat16, *SMALL}:
            return self.join((a, b))
        raise self.refusal((a, b), "NumPy has no common dtype of them")

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return NumPy's join for an operator; functions follow the default mode."""
        return self.common(operands) if op in _OPERATORS else super().meeting(operands, op)

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return a weak dtype beside an operator; bools and functions follow the default mode."""
        if not isinstance(value, bool) and (place.op in _OPERATORS or not place.op):
            unsigned = isinstance(value, int) and 2**63 <= value < 2**64
            beside = any(operand.dtype is DType.uint64 for operand in place.partners)
            return DType.uint64 if unsigned and beside else LibraryRules.literal(self, value, place)
        return super().literal(value, place)

    def masks_first(self, value: Any, place: Place, beside: DType | None) -> bool:
        """Return True: a number before a mask promotes."""
        return True


def _is_cast(source: DType, target: DType) -> bool:
    """Whether TensorFlow has a kernel that casts `source` to `target`."""
    if source in (DType.int4, DType.uint4):
        return target.is_integer
    return source not in SMALL or source in (DType.float8_e4m3fn, DType.float8_e5m2)


TF_LEGACY = TensorFlowLegacy(
    "tf_legacy",
    'TensorFlow in its mode "legacy": operators promote as NumPy 2, functions do not.',
    source=SOURCE,
    dtypes=TENSORFLOW.dtypes,
    more=SMALL,
)
