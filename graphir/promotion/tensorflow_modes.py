"""The rules of TensorFlow's modes: "all" and "safe", in which tensors promote, and "legacy"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.promotion.jax import JAX_LATTICE
from graphir.promotion.library import Facts, LibraryRules
from graphir.promotion.numpy_ import NUMPY
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.scalars import fits
from graphir.promotion.tensorflow import INTS, SMALL, SOURCE, TENSORFLOW, TensorFlow

_IN_MODES = {
    "add subtract multiply divide floor_divide remainder fmod pow equal": "promotes",
    "matmul tensordot outer": "promotes",
    "maximum minimum": "commits",
    "negative abs sign square reciprocal floor ceil round sqrt rsqrt exp expm1 log log1p": "keeps",
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid silu gelu": "keeps",
    "real imag conj sum prod max min mean var std logsoftmax softplus": "keeps",
    "reshape transpose permute squeeze unsqueeze": "keeps",
    "positive trunc cbrt log2 log10 deg2rad bitwise_invert": "keeps",
}
_ROLES = {op: role for ops, role in _IN_MODES.items() for op in ops.split()}
"""The role of each op: "promotes" or "commits" for ops that join operands, "keeps" for unary ops.

A promoting op gives a weak result if the join is weak; a committing op gives the default dtype
instead. A unary op keeps a weak operand weak. Source: weak_tensor_ops.py,
weak_tensor_binary_op_wrapper and weak_tensor_unary_op_wrapper.
"""

TF_LATTICE = Lattice(
    "tf_all",
    {
        low: [high for high in above if high in TENSORFLOW.dtypes]
        for low, above in JAX_LATTICE.edges.items()
        if low in TENSORFLOW.dtypes
    },
)
"""flexible_dtypes.py, _BINARY_DTYPE_RES_HALF: each cell equals the join in JAX's lattice."""


class TensorFlowAll(TensorFlow):
    """tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="all").

    Twelve ops promote: those of + - * / // % ** ==, matmul, tensordot, maximum and minimum (and so
    clip). A promoting op accepts its usual dtypes at the join. The other ops, != and < among them,
    still require one dtype. A result is weak if the join is weak, except for the ops that commit
    it.

    TensorFlow has two weak floats. A Python float is a weak float32. A Python float that joins an
    integer gives a weak float64: `x_i32 * 0.1`. weak_float stands for the weak float64. A Python
    float that meets bools and literals alone is float32 here, and not weak: `mask + 0.5` beside
    bfloat16 is float32, whereas TensorFlow has bfloat16.
    """

    instead = "jax"
    by_value = True

    def beside(self, dtype: DType, partners: Sequence[Typed], op: str) -> DType:
        """Return the array's own dtype if the op promotes; the other ops cast the array here too.

        Every op casts the array if the table of joins lacks one of the dtypes. A bool array is an
        ordinary factor of `*`, not a mask.
        """
        to = super().beside(dtype, partners, op)
        promotes = op in _ROLES or op in ("", "clip")
        mask = op == "multiply" and dtype is DType.bool
        return dtype if promotes and not mask and not {dtype, to} & {*SMALL} else to

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the join, or float32 for Python floats that join no number of a tensor.

        weak_float stands for the weak float64, which only a tensor's number makes of a Python
        float.
        """
        dtype = LibraryRules.common(self, operands)
        narrow = dtype is DType.weak_float and all(map(_is_narrow, operands))
        return DType.float32 if narrow else dtype

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the join, if the op promotes; clip is maximum(minimum(x, high), low)."""
        if op == "clip":
            x, low, high = operands
            lesser = self.family_dtype("ordering", self.meeting([x, high], "minimum"), op)
            return self.meeting([Operand(lesser), low], "maximum")
        by_mask = op == "multiply" and any(operand.dtype is DType.bool for operand in operands)
        if op not in _ROLES or by_mask:
            return super().meeting(operands, op)
        dtype = self.common(self._as_tensors(operands, op))
        return self.concrete_dtype(dtype) if _ROLES[op] == "commits" else dtype

    def by_itself(self, operand: Typed) -> DType:
        """Return float32 for a Python float, float64 for a weak result."""
        narrow = operand.dtype is DType.weak_float and _is_narrow(operand)
        return DType.float32 if narrow else super().by_itself(operand)

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return the wrapped int of the default mode.

        Refuse an int that wraps and exceeds 32 bits.
        """
        number = super().literal_value(value, place)
        if number is not value and not fits(value, DType.int32):
            raise self.misfit(value, DType.int32)
        return number

    def masks_first(self, value: Any, place: Place, beside: DType | None) -> bool:
        """Return True: a number may come before its mask."""
        return True

    def concrete_dtype(self, weak: DType) -> DType:
        """Return int32, float64 or complex128 for a weak dtype."""
        return DType.float64 if weak is DType.weak_float else super().concrete_dtype(weak)

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the dtype of the default mode; if the op promotes, an int must fit 32 bits."""
        promotes = place.op in _ROLES or place.op in ("", "clip")
        divides = place.op == "divide" and any(
            operand.dtype.is_integer for operand in place.partners
        )
        if promotes and not divides and isinstance(value, int) and not fits(value, DType.int32):
            raise self.misfit(value, DType.int32)
        return super().literal(value, place)


def _is_narrow(operand: Typed) -> bool:
    """Whether a weak float stays a weak float32 beside a literal, bool or weak integer."""
    literal = isinstance(operand, Operand) and not operand.rank
    return operand.dtype not in INTS and (literal or operand.dtype is not DType.weak_float)


class TensorFlowSafe(TensorFlowAll):
    """The mode "safe": a join must equal an operand's dtype and hold every operand exactly.

    Other joins raise PromotionError. More than two operands join from left to right, so their order
    counts.
    """

    instead = "tf_all"

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """Return the dtype of the mode "all".

        A NumPy scalar that TensorFlow casts must join safely.

        np.float64 and np.complex128 are exempt, since they are Python numbers too.
        """
        to = super().array(dtype, partners, op)
        scalar = isinstance(value, np.generic) and not isinstance(value, (float, complex))
        if scalar and to is not dtype and not {dtype, to} & {*SMALL}:
            self.join((to, dtype))
        return to

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Fold the dtypes from left to right; raise PromotionError at the first unsafe join."""
        result = dtypes[0]
        for dtype in dtypes[1:]:
            pair = (result, dtype)
            result = super().join(pair)
            if not self._is_safe(pair, result):
                raise self.refusal(pair, f"{result}, in which they join, is not safe for both")
        return result

    def _is_safe(self, pair: tuple[DType, DType], result: DType) -> bool:
        if result.weak and all(dtype.weak for dtype in pair):
            return True
        if result is DType.weak_float and any(dtype.is_integer for dtype in pair):
            return False  # a Python float is a weak float32; the result is a weak float64
        strong_result = self.concrete_dtype(result)
        strong = [dtype for dtype in pair if not dtype.weak]
        return strong_result in map(self.concrete_dtype, pair) and all(
            dtype.exact_in(strong_result) for dtype in strong
        )


TF_ALL = TensorFlowAll("tf_all", 'TensorFlow in its mode "all".', TF_LATTICE, SOURCE, more=SMALL)
TF_SAFE = TensorFlowSafe(
    "tf_safe", 'TensorFlow in its mode "safe".', TF_LATTICE, SOURCE, more=SMALL
)


# -- The rules of TensorFlow in the mode "legacy", the default of its switch to NumPy's behaviour
#
# In this mode Python's binary operators and comparisons convert both operands to their
# np.result_type under NumPy 2. Source: framework/override_binary_operator.py of tensorflow 2.21,
# maybe_promote_tensors.

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
            has_uint64 = any(operand.dtype is DType.uint64 for operand in place.partners)
            return (
                DType.uint64
                if unsigned and has_uint64
                else LibraryRules.literal(self, value, place)
            )
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
