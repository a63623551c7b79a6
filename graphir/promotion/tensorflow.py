"""The rules of TensorFlow: as it comes, and in the two modes in which it promotes.

Sources: the table of JEP 9407; tensorflow/python/framework/flexible_dtypes.py and ops/math_ops.py,
weak_tensor_ops.py of 2.21, against which every op is measured, eagerly and on CPU
(tests/peers/test_peer_tensorflow.py).

Where TensorFlow's operators and functions differ, ops are its operators: `1 + x` is `x + 1`, where
tf.add(1, x) makes 1 an int32 first; & | ^ ~ of bools are the logical functions, where tf.bitwise
refuses bool; * with a bool tensor is bool, where tf.multiply refuses or promotes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.promotion.library import COMPLEX, SIGNED, UNSIGNED, Facts, LibraryRules, by_op
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.rules import Family
from graphir.promotion.scalars import WEAK, fits

_FLOATS = (DType.bfloat16, DType.float16, DType.float32, DType.float64)
_WEAK = {
    DType.weak_int: DType.int32,
    DType.weak_float: DType.float32,
    DType.weak_complex: DType.complex128,
}
_SMALL_INTS = (DType.int2, DType.int4, DType.uint2, DType.uint4)
_SMALL_FLOATS = (
    *(DType.float8_e4m3b11fnuz, DType.float8_e4m3fn, DType.float8_e4m3fnuz),
    *(DType.float8_e5m2, DType.float8_e5m2fnuz, DType.float4_e2m1fn),
)
SMALL = (*_SMALL_INTS, *_SMALL_FLOATS)
INTS = (*SIGNED, *UNSIGNED)
_REAL = (*INTS, *_FLOATS)
_NUMBERS = (*_REAL, *COMPLEX)
_USUAL = (DType.bool, *_NUMBERS)
_ALL = (*_USUAL, *SMALL)

_TAKES = {
    "add subtract outer positive square": _NUMBERS,
    "multiply": (DType.bool, *_NUMBERS),
    "negative abs sign pow": (*SIGNED, *_FLOATS, *COMPLEX),
    "matmul tensordot": (DType.int32, DType.int64, *_FLOATS, *COMPLEX),
    "floor_divide remainder fmod maximum minimum clip relu": _REAL,
    "max min sort argsort searchsorted less less_equal greater greater_equal": _REAL,
    "argmax argmin": (DType.bool, *_REAL),
    "sum prod cumulative_sum cumulative_prod real": _NUMBERS,
    "round": (*_REAL, *_SMALL_INTS),
    "floor ceil trunc is_nan is_inf is_finite signbit": _FLOATS,
    "erf gelu softmax logsoftmax layer_norm atan2 hypot logaddexp copysign": _FLOATS,
    "nextafter as_complex": (DType.float32, DType.float64),
    "reciprocal sqrt rsqrt exp expm1 log log1p log2 log10 sin cos tan": (*_FLOATS, *COMPLEX),
    "asin acos atan sinh cosh tanh asinh acosh atanh": (*_FLOATS, *COMPLEX),
    "sigmoid silu mean var std": (*_FLOATS, *COMPLEX),
    "bitwise_and bitwise_or bitwise_xor bitwise_invert": (DType.bool, *INTS),
    "left_shift right_shift": INTS,
    "equal not_equal where scatter flip roll pad imag": _USUAL,
    "conj": _ALL[1:],
    "tile repeat": tuple(dtype for dtype in _USUAL if dtype is not DType.uint16),
    "gather take_along broadcast_to transpose permute slice concat stack": (
        *(*_USUAL, DType.float8_e4m3fn, DType.float8_e5m2),
    ),
}
"""The dtypes that an op takes, and gives. Those TensorFlow has not are as those beside them."""


def _facts() -> Facts:
    """What is computed for each dtype; a weak one is taken where its strong one is."""
    strong = {dtype: dtype for dtype in _ALL} | _WEAK
    facts: dict[str, dict[DType, DType | None]] = {
        names: {dtype: dtype if of in takes else None for dtype, of in strong.items()}
        for names, takes in _TAKES.items()
    }
    facts["divide"] = {
        **dict.fromkeys(_ALL),
        **{d: DType.float32 if d.bits < 32 else DType.float64 for d in INTS},
        **{d: d for d in (*_FLOATS, *COMPLEX, *_WEAK)},
        DType.weak_int: DType.weak_float,
    }
    return by_op(facts)


# The order in which a Python scalar is taken; bool has no part in it.
_RANK = {"int": 1, "uint": 1, "float": 2, "complex": 3}

# What True becomes when eager TensorFlow converts it (pywrap_tensor.cc, py_seq_tensor.cc).
_TAKE_TRUE = {
    *(DType.int32, DType.int64, DType.uint64),
    *(DType.float16, DType.float32, DType.float64, DType.complex128),
}


class TensorFlow(LibraryRules):
    """TensorFlow as it comes: tensors of two dtypes never mix, and the first operand decides.

    The table is tf.add: its first operand becomes a tensor by itself, a Python scalar of int32,
    float32 or complex128; the second must have that dtype, or be a Python scalar of no higher
    kind. So the table is not symmetric. In ops, and where `promote` is given numbers rather than
    weak dtypes, the tensors decide, wherever they stand. A literal that does not fit wraps, or is
    rounded; there are no weak tensors.

    Ops keep the dtype, so that sums of int8 are int8; `/` of integers up to 16 bits is float32, of
    wider ones float64 (math_ops._TRUEDIV_TABLE).
    """

    library = "TensorFlow"
    of_numbers = False  # its functions make tensors of them
    instead = "tf_all"
    exceptions = _facts()

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """That of the tensor beside it, to which TensorFlow casts: `x_i8 + np.array([300])` wraps.

        Not where the function makes it a tensor by itself, nor beside a mask that it multiplies.
        """
        to = self.beside(dtype, partners, op)
        if dtype.is_complex and not to.is_complex:
            raise PromotionError(
                f"{op or 'promote'}: {dtype} cast to the {to} beside it, as under {self.name!r}, "
                "would drop the imaginary part",
                fix="take .real first",
            )
        return to

    def beside(self, dtype: DType, partners: Sequence[Typed], op: str) -> DType:
        """The dtype that an array has beside tensors."""
        tensors = [operand.dtype for operand in partners if not operand.dtype.weak]
        if not tensors or op in _BY_THEMSELVES or (op == "multiply" and tensors[0] is DType.bool):
            return dtype
        return tensors[0]

    def literal_value(self, value: Any, place: Place) -> Any:
        """The int that an int wraps to in the dtype of the integers that it divides, or divide it.

        Elsewhere an op computes in that dtype itself, where the literal wraps by its cast.
        """
        beside = next((operand.dtype for operand in place.partners if not operand.dtype.weak), None)
        wraps = place.op == "divide" and type(value) is int and -(2**63) <= value < 2**63
        if not (wraps and beside and beside.is_integer):
            return value
        return int(np.uint64(value % 2**64).astype(beside.storage))

    def common(self, operands: Sequence[Typed]) -> DType:
        """What `+` gives, which takes no bool; of bare dtypes tf.add, where the first decides."""
        dtype = self._coerce(sorted(operands, key=_gives_way))
        return dtype if len(operands) == 1 else self.family_dtype("arithmetic", dtype, "add")

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """The dtype of the tensors, wherever literals stand; tf.add alone heeds that."""
        dtypes = {operand.dtype for operand in operands}
        if op in ("matmul", "tensordot") and dtypes == _MIXED_PRODUCT:
            return DType.float32
        if op == "multiply" and DType.bool in dtypes:
            return self._mask_product(dtypes)
        return self._coerce(
            sorted(self._as_tensors(operands, op), key=lambda operand: operand.dtype.weak)
        )

    def _mask_product(self, dtypes: Iterable[DType]) -> DType:
        """The operator * where one is bool: all become int32, then bool (_mul_dispatch_factory).

        So a mask times x is bool. What may be 0 in int32 alone is refused: fractions, 64 bits.
        """
        for dtype in dtypes:
            if dtype not in _MASK_DTYPES:
                raise PromotionError(
                    f"bool and {dtype} do not multiply under {self.name!r}: * makes both int32, "
                    "then bool, so that 0.5 and 2**32 would count as False",
                    fix=f"cast the bool, for example .cast(DType.{_WEAK.get(dtype, dtype)})",
                )
        return DType.bool

    def _as_tensors(self, operands: Sequence[Typed], op: str) -> Sequence[Typed]:
        """The operands, made tensors by themselves where the function begins with that."""
        if op not in ("as_complex", "tensordot"):
            return operands
        return [Operand(self.by_itself(operand)) for operand in operands]

    def by_itself(self, operand: Typed) -> DType:
        """The dtype of the tensor that an operand is, or becomes where nothing is beside it."""
        return self.concrete_dtype(self.supported(operand.dtype))

    def _coerce(self, operands: Sequence[Typed]) -> DType:
        """The dtype of the first, that the others have or, being Python scalars, take."""
        first = self.by_itself(operands[0])
        for operand in operands[1:]:
            dtype = self.supported(operand.dtype)
            if dtype is first or (dtype.weak and _RANK[dtype.family] <= _RANK.get(first.family, 0)):
                continue
            why = f"only Python scalars, of no higher kind, become {first}"
            if operands[0].dtype.weak:
                why = f"a Python scalar that comes first is {first}; write it second"
            raise self.refusal([operands[0].dtype, dtype], why)
        return first

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """All at their one dtype, if the op takes that."""
        return (self.family_dtype("movement", self.meeting(operands, op), op),) * len(operands)

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """As the tables have it; a condition is bool, whatever `where` may choose among."""
        if op == "mean" and dtype.is_integer:
            raise PromotionError(
                f"the mean of {dtype} is {dtype} under {self.name!r}, with its fraction cut off, "
                "which no kernel computes",
                fix="take ops.mean(x.cast(DType.float64)), and of that, for TensorFlow's number, "
                f"ops.trunc(...).cast(DType.{self.concrete_dtype(dtype)})",
            )
        return (
            self.truth(dtype, op) if family == "truth" else super().family_dtype(family, dtype, op)
        )

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Weak; True as eager TensorFlow converts it; alone, int64 where int32 does not hold it."""
        partners = place.partners
        beside = next((operand.dtype for operand in partners if not operand.dtype.weak), None)
        if not self.masks_first(value, place, beside):
            raise self.refusal((WEAK[type(value)], DType.bool), "a number comes after its mask")
        if isinstance(value, bool) and beside and beside in _TAKE_TRUE:
            return beside
        if isinstance(value, int) and beside is DType.uint64 and 2**63 <= value < 2**64:
            return beside
        masks = place.op == "multiply" and beside is DType.bool
        if masks and isinstance(value, int) and not fits(value, DType.int32):
            raise self.misfit(value, DType.int32)
        weak = super().literal(value, place)
        if weak is DType.bool and beside and beside is not weak:
            raise self.refusal((weak, beside), f"{value} is not converted to {beside}")
        wide = weak is DType.weak_int and not partners and not fits(value, DType.int32)
        return DType.int64 if wide else weak

    def masks_first(self, value: Any, place: Place, beside: DType | None) -> bool:
        """Whether a literal may stand where it does: not as `5 * mask`, which makes 5 a bool."""
        literal_first = place.op == "multiply" and place.at == 0 and beside is DType.bool
        return isinstance(value, bool) or not literal_first

    def position(self, op: str) -> DType:
        """int32, but of argmax and argmin int64."""
        return DType.int64 if op in ("argmax", "argmin") else DType.int32

    def concrete_dtype(self, weak: DType) -> DType:
        """int32, float32 and complex128."""
        return _WEAK.get(weak, weak)


def _gives_way(operand: Typed) -> bool:
    """Whether an operand takes the dtype of tensors that come after it, unlike a bare dtype."""
    return operand.dtype.weak and not (isinstance(operand, Operand) and operand.rank)


_BY_THEMSELVES = ("as_complex", "tensordot", "searchsorted")
"""The functions that convert each operand by itself, as far as NumPy arrays are concerned."""

_MASK_DTYPES = {
    DType.bool,
    DType.weak_int,
    *(d for d in (*INTS, *_SMALL_INTS) if 4 <= d.bits <= 32),
}
"""What a mask multiplies: int32 keeps it apart from 0 (int2 it does not take)."""

_MIXED_PRODUCT = {DType.bfloat16, DType.float32}
"""The one pair that mixes: their matmul is float32 (math_ops.matmul, BatchMatMulV3)."""

SOURCE = "JEP 9407; tensorflow 2.21, flexible_dtypes.py"

TENSORFLOW = TensorFlow(
    "tensorflow",
    "TensorFlow as it comes: tensors never mix, a scalar takes the dtype of what stands first.",
    source=SOURCE,
    dtypes=(*_USUAL, *_WEAK),
    more=SMALL,
)
