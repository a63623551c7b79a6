"""The rules of TensorFlow in the two modes in which its tensors promote, "all" and "safe"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphir.dtypes import DType
from graphir.lattice.order import Lattice
from graphir.promotion.jax import JAX_LATTICE
from graphir.promotion.library import LibraryRules
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.scalars import fits
from graphir.promotion.tensorflow import INTS, SMALL, SOURCE, TENSORFLOW, TensorFlow

_IN_MODES = {
    "add subtract multiply divide floor_divide remainder fmod pow equal": "promotes",
    "matmul tensordot outer": "promotes",
    "maximum minimum": "commits",
    "negative abs sign square reciprocal floor ceil round sqrt rsqrt exp expm1 log log1p": "keeps",
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid silu gelu": "keeps",
    "real imag conj sum prod max min mean var std logsoftmax": "keeps",
    "reshape transpose permute squeeze unsqueeze": "keeps",
    "positive trunc log2 log10 bitwise_invert": "keeps",
}
_ROLES = {op: role for ops, role in _IN_MODES.items() for op in ops.split()}
"""What ops do besides: join operands, and give a weak result or commit it; keep one weak.

weak_tensor_ops.py: weak_tensor_binary_op_wrapper, weak_tensor_unary_op_wrapper.
"""

TF_LATTICE = Lattice(
    "tf_all",
    {
        low: [high for high in above if high in TENSORFLOW.dtypes]
        for low, above in JAX_LATTICE.edges.items()
        if low in TENSORFLOW.dtypes
    },
)
"""flexible_dtypes.py, _BINARY_DTYPE_RES_HALF: cell by cell what JAX's lattice says."""


class TensorFlowAll(TensorFlow):
    """tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="all").

    Twelve ops promote, those of + - * / // % ** ==, matmul, tensordot, maximum and minimum (and so
    clip), and take what they take at the join. The others, != and < among them, still want one
    dtype. Results are weak where the join is, but of the ops that commit it.

    TensorFlow has two weak floats: float32, a Python float, and float64, which an integer makes of
    it: `x_i32 * 0.1`. weak_float is the second; a Python float that meets bools and literals alone
    is float32, not weak: `mask + 0.5` beside bfloat16 is float32, where TensorFlow has bfloat16.
    """

    instead = "jax"
    by_value = True

    def beside(self, dtype: DType, partners: Sequence[Typed], op: str) -> DType:
        """Its own where the op promotes; the others cast it here too.

        So do all where the table of joins lacks a dtype. A bool array is no mask, but multiplies.
        """
        to = super().beside(dtype, partners, op)
        promotes = op in _ROLES or op in ("", "clip")
        mask = op == "multiply" and dtype is DType.bool
        return dtype if promotes and not mask and not {dtype, to} & {*SMALL} else to

    def common(self, operands: Sequence[Typed]) -> DType:
        """The join; float32 of Python floats that no number of a tensor has joined."""
        dtype = LibraryRules.common(self, operands)
        narrow = dtype is DType.weak_float and all(map(_is_narrow, operands))
        return DType.float32 if narrow else dtype

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """The join, if the op promotes; clip is maximum(minimum(x, high), low)."""
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
        """float32 of a Python float, float64 of a weak result."""
        narrow = operand.dtype is DType.weak_float and _is_narrow(operand)
        return DType.float32 if narrow else super().by_itself(operand)

    def number(self, value: Any, place: Place) -> Any:
        """As without promotion, of an int of 32 bits."""
        number = super().literal_value(value, place)
        if number is not value and not fits(value, DType.int32):
            raise self.misfit(value, DType.int32)
        return number

    def masks_first(self, value: Any, place: Place, beside: DType | None) -> bool:
        """A number may come before its mask."""
        return True

    def concrete_dtype(self, weak: DType) -> DType:
        """int32, float64 and complex128."""
        return DType.float64 if weak is DType.weak_float else super().concrete_dtype(weak)

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """As without promotion; where the op promotes, an int has 32 bits."""
        promotes = place.op in _ROLES or place.op in ("", "clip")
        divides = place.op == "divide" and any(
            operand.dtype.is_integer for operand in place.partners
        )
        if promotes and not divides and isinstance(value, int) and not fits(value, DType.int32):
            raise self.misfit(value, DType.int32)
        return super().literal(value, place)


def _is_narrow(operand: Typed) -> bool:
    """Whether a weak float beside it stays one of 32 bits: a literal, bool, or weak integer."""
    literal = isinstance(operand, Operand) and not operand.rank
    return operand.dtype not in INTS and (literal or operand.dtype is not DType.weak_float)


class TensorFlowSafe(TensorFlowAll):
    """The same in the mode "safe": a join that neither operand has, or that loses, is refused.

    More than two operands join one after another, so that their order counts.
    """

    instead = "tf_all"

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """As in the mode "all"; a NumPy scalar that is cast must join its tensor safely.

        Not np.float64 and np.complex128, which are Python's numbers too.
        """
        to = super().array(dtype, partners, op)
        scalar = isinstance(value, np.generic) and not isinstance(value, (float, complex))
        if scalar and to is not dtype and not {dtype, to} & {*SMALL}:
            self.join((to, dtype))
        return to

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """From left to right, each join checked."""
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
            return False  # a Python float is a weak float32, which the result is not
        strong_result = self.concrete_dtype(result)
        strong = [dtype for dtype in pair if not dtype.weak]
        return strong_result in map(self.concrete_dtype, pair) and all(
            dtype.exact_in(strong_result) for dtype in strong
        )


TF_ALL = TensorFlowAll("tf_all", 'TensorFlow in its mode "all".', TF_LATTICE, SOURCE, more=SMALL)
TF_SAFE = TensorFlowSafe(
    "tf_safe", 'TensorFlow in its mode "safe".', TF_LATTICE, SOURCE, more=SMALL
)
