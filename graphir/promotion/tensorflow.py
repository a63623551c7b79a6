"""The rules of TensorFlow's default mode, in which tensors of two dtypes never mix.

Sources: the table of JEP 9407; tensorflow/python/framework/flexible_dtypes.py and ops/math_ops.py,
weak_tensor_ops.py of 2.21, against which every op is measured, eagerly and on CPU
(tests/peers/test_peer_tensorflow.py).

Where TensorFlow's operators and functions differ, the ops here follow the operators. `1 + x` is `x
+ 1`, whereas tf.add(1, x) first makes 1 an int32. & | ^ ~ of bools are the logical functions,
whereas tf.bitwise refuses bool. `*` with a bool tensor is bool, whereas tf.multiply refuses or
promotes it.
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
    "floor_divide remainder maximum minimum clip relu": _REAL,
    "fmod": (DType.int32, DType.int64, DType.float32, DType.float64),
    "max min sort argsort searchsorted less less_equal greater greater_equal": _REAL,
    "argmax argmin": (DType.bool, *_REAL),
    "sum prod cumulative_sum cumulative_prod real": _NUMBERS,
    "round": (*_REAL, *_SMALL_INTS),
    "floor ceil trunc is_nan is_inf is_finite signbit": _FLOATS,
    "erf gelu softplus softmax logsoftmax layer_norm cbrt deg2rad": _FLOATS,
    "atan2 hypot logaddexp copysign heaviside": _FLOATS,
    "nextafter as_complex": (DType.float32, DType.float64),
    "reciprocal sqrt rsqrt exp expm1 log log1p log2 log10 sin cos tan": (*_FLOATS, *COMPLEX),
    "asin acos atan sinh cosh tanh asinh acosh atanh": (*_FLOATS, *COMPLEX),
    "sigmoid silu mean var std": (*_FLOATS, *COMPLEX),
    "bitwise_and bitwise_or bitwise_xor bitwise_invert": (DType.bool, *INTS),
    "left_shift right_shift": INTS,
    "equal not_equal where scatter flip roll pad imag": (_USUAL),
    "slice_update index_update index_add": (_USUAL),
    "conj": _ALL[1:],
    "tile repeat": tuple(dtype for dtype in _USUAL if dtype is not DType.uint16),
    "gather take_along broadcast_to transpose permute slice affine_view item concat stack": (
        *(*_USUAL, DType.float8_e4m3fn, DType.float8_e5m2),
    ),
}
"""The dtypes that each op accepts and returns.

An op that TensorFlow lacks stands with similar ops.
"""


def _facts() -> Facts:
    """Return the exceptions by op; an op accepts a weak dtype if it accepts its strong dtype."""
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


# The kinds in order: a Python scalar converts to its own kind or a higher one, and never to bool.
_RANK = {"int": 1, "uint": 1, "float": 2, "complex": 3}

# The dtypes to which eager TensorFlow converts True (pywrap_tensor.cc, py_seq_tensor.cc).
_TAKE_TRUE = {
    *(DType.int32, DType.int64, DType.uint64),
    *(DType.float16, DType.float32, DType.float64, DType.complex128),
}


class TensorFlow(LibraryRules):
    """TensorFlow by default: tensors of two dtypes never mix, and the first operand decides.

    The promotion table is that of tf.add. The first operand of tf.add becomes a tensor by itself: a
    Python scalar becomes int32, float32 or complex128. The second operand must have that dtype, or
    be a Python scalar of no higher kind. So the table is not symmetric. In ops, and in calls of
    `promote` with numbers rather than weak dtypes, the tensors decide, wherever they stand. A
    literal that does not fit wraps or rounds. TensorFlow has no weak tensors in this mode.

    Ops keep the dtype, so sums of int8 are int8. `/` of integers up to 16 bits is float32, of wider
    integers float64 (math_ops._TRUEDIV_TABLE).
    """

    library = "TensorFlow"
    of_numbers = False  # TensorFlow's functions convert Python numbers to tensors
    instead = "tf_all"
    exceptions = _facts()

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """Return the dtype of the tensor beside the array: `x_i8 + np.array([300])` wraps.

        The array keeps its own dtype if the function converts each operand by itself, or if a mask
        multiplies the array (see `beside`). A cast that would drop imaginary parts raises
        PromotionError.
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
        """Return the dtype of an array beside tensors: the first tensor's, or the array's own."""
        tensors = [operand.dtype for operand in partners if not operand.dtype.weak]
        if not tensors or op in _BY_THEMSELVES or (op == "multiply" and tensors[0] is DType.bool):
            return dtype
        return tensors[0]

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return the int to which an int literal wraps in `/`, in the integer dtype of its tensor.

        Every other op computes in that dtype itself, so the literal's cast wraps it.
        """
        partner = next(
            (operand.dtype for operand in place.partners if not operand.dtype.weak), None
        )
        wraps = place.op == "divide" and type(value) is int and -(2**63) <= value < 2**63
        if not (wraps and partner and partner.is_integer):
            return value
        return int(np.uint64(value % 2**64).astype(partner.storage))

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the dtype of `+`, which refuses bool.

        For bare dtypes, the answer is that of tf.add, where the first operand decides.
        """
        dtype = self._coerce(sorted(operands, key=_gives_way))
        return dtype if len(operands) == 1 else self.family_dtype("arithmetic", dtype, "add")

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the dtype of the tensors, wherever literals stand.

        Order matters in tf.add alone.
        """
        dtypes = {operand.dtype for operand in operands}
        if op in ("matmul", "tensordot") and dtypes == _MIXED_PRODUCT:
            return DType.float32
        if op == "multiply" and DType.bool in dtypes:
            return self._mask_product(dtypes)
        return self._coerce(
            sorted(self._as_tensors(operands, op), key=lambda operand: operand.dtype.weak)
        )

    def _mask_product(self, dtypes: Iterable[DType]) -> DType:
        """Return bool, the dtype of `*` with a bool operand (_mul_dispatch_factory).

        TensorFlow casts all operands to int32 and then to bool, so a mask times x is bool. The
        method refuses dtypes with nonzero values that are 0 in int32: fractions, and integers of 64
        bits.
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
        """Return the operands, as bare tensors if the op converts each operand by itself."""
        if op not in ("as_complex", "tensordot"):
            return operands
        return [Operand(self.by_itself(operand)) for operand in operands]

    def by_itself(self, operand: Typed) -> DType:
        """Return the dtype of the tensor that an operand is, or becomes without partners."""
        return self.concrete_dtype(self.supported(operand.dtype))

    def _coerce(self, operands: Sequence[Typed]) -> DType:
        """Return the first operand's dtype, which every other operand must have or take."""
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
        """Return the tensors' one dtype for every operand, if the op accepts it."""
        return (self.family_dtype("movement", self.meeting(operands, op), op),) * len(operands)

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """Return the dtype in the tables; refuse the mean of integers; require a bool condition."""
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
        """Return the weak dtype; True converts as in eager TensorFlow.

        Without partners, an int beyond int32 is int64.
        """
        partners = place.partners
        partner = next((operand.dtype for operand in partners if not operand.dtype.weak), None)
        if not self.masks_first(value, place, partner):
            raise self.refusal((WEAK[type(value)], DType.bool), "a number comes after its mask")
        if isinstance(value, bool) and partner and partner in _TAKE_TRUE:
            return partner
        if isinstance(value, int) and partner is DType.uint64 and 2**63 <= value < 2**64:
            return partner
        masks = place.op == "multiply" and partner is DType.bool
        if masks and isinstance(value, int) and not fits(value, DType.int32):
            raise self.misfit(value, DType.int32)
        weak = super().literal(value, place)
        if weak is DType.bool and partner and partner is not weak:
            raise self.refusal((weak, partner), f"{value} is not converted to {partner}")
        wide = weak is DType.weak_int and not partners and not fits(value, DType.int32)
        return DType.int64 if wide else weak

    def masks_first(self, value: Any, place: Place, beside: DType | None) -> bool:
        """Whether a literal may stand in its place.

        `*` converts the 5 of `5 * mask` to bool, so the rules refuse a number before a mask.
        """
        literal_first = place.op == "multiply" and place.at == 0 and beside is DType.bool
        return isinstance(value, bool) or not literal_first

    def position(self, op: str) -> DType:
        """Return int64 for argmax and argmin, int32 for other ops."""
        return DType.int64 if op in ("argmax", "argmin") else DType.int32

    def concrete_dtype(self, weak: DType) -> DType:
        """Return int32, float32 or complex128 for a weak dtype."""
        return _WEAK.get(weak, weak)


def _gives_way(operand: Typed) -> bool:
    """Whether an operand takes the dtype of later tensors.

    A literal does, a bare dtype does not.
    """
    return operand.dtype.weak and not (isinstance(operand, Operand) and operand.rank)


_BY_THEMSELVES = ("as_complex", "tensordot", "searchsorted")
"""The functions that convert each operand by itself; this matters for NumPy arrays only."""

_MASK_DTYPES = {
    DType.bool,
    DType.weak_int,
    *(d for d in (*INTS, *_SMALL_INTS) if 4 <= d.bits <= 32),
}
"""The dtypes that a mask multiplies: int32 maps their nonzero values to nonzero values.

TensorFlow refuses int2 here.
"""

_MIXED_PRODUCT = {DType.bfloat16, DType.float32}
"""The only pair of dtypes that mixes: its matmul is float32 (math_ops.matmul, BatchMatMulV3)."""

SOURCE = "JEP 9407; tensorflow 2.21, flexible_dtypes.py"

TENSORFLOW = TensorFlow(
    "tensorflow",
    "TensorFlow as it comes: tensors never mix, a scalar takes the dtype of what stands first.",
    source=SOURCE,
    dtypes=(*_USUAL, *_WEAK),
    more=SMALL,
)
