"""The rules of PyTorch: a ladder of n-d tensors, 0-d tensors and Python numbers.

Sources, of 2.13 and 2.14: c10/core/ScalarType.cpp (promoteTypes, toComplexType), c10/core/Scalar.h;
aten/src/ATen/native: TypeProperties.cpp (combine_categories, result_type), BinaryOps.cpp and .h,
UnaryOps.cpp, ReduceOps.cpp, TensorCompare.cpp, TensorAdvancedIndexing.cpp, LinearAlgebra.cpp,
layer_norm.cpp. The tests measure every op (tests/peers/test_peer_torch.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from graphir.dtype_lattices.published import lattice_of_text
from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.promotion.library import UPDATES, LibraryRules, by_op
from graphir.promotion.operands import ALONE, Number, Operand, Place, Typed
from graphir.promotion.rules import IN_PLACE, PromotionRules

_HALVES = (DType.float16, DType.bfloat16)
_WITHOUT_INTS = (DType.uint16, DType.uint32, DType.uint64)

TORCH_LATTICE = lattice_of_text(
    "torch",
    "bool < u8, i8; u8 < i16; i8 < i16 < i32 < i64 < f16, bf16; u16, u32, u64 < f16, bf16 < f32;"
    "f32 < f64, c64; f64 < c128; c64 < c128;"
    "f8e4m3fn; f8e4m3fnuz; f8e5m2; f8e5m2fnuz; f8e8m0fnu",
)
"""promoteTypes, except that uint16, uint32 and uint64 do not mix with complex numbers either."""

_COMPLEX = {
    DType.float16: None,  # ComplexHalf, complex32
    DType.bfloat16: None,  # BComplex32, which few ops compute in
    DType.float32: DType.complex64,
    DType.float64: DType.complex128,
}
"""toComplexType: the complex dtype whose parts have a float dtype."""

_NUMBERS = {
    DType.weak_int: DType.int64,
    DType.weak_float: DType.float32,
    DType.weak_complex: DType.complex64,
}
"""The dtypes of Python numbers.

torch.set_default_dtype, float32 by default, changes the last two.
"""

_INTS: tuple[DType, ...] = tuple(d for d in TORCH_LATTICE if d.is_integer)
_NO_INTS = dict.fromkeys((DType.bool, *_INTS))
_NO_COMPLEX = dict.fromkeys(d for d in TORCH_LATTICE if d.is_complex)

_RANGE_CHECKED = {
    "clip": {*_INTS, *_HALVES, DType.float32},
    "where": {*_INTS, DType.float32, DType.complex64},
    "pow": {*_INTS, *_HALVES},
}
"""The ops that check a number's range, by the common dtypes in which they do; other ops wrap it."""

_ALIKE = UPDATES | {"heaviside", "matmul", "tensordot", "layer_norm", "as_complex"}
"""The ops that require operands of one dtype."""


class Torch(LibraryRules):
    """PyTorch, with its default dtype float32.

    The rungs are Python numbers, 0-d tensors and n-d tensors, from low to high. Operands of a
    higher rung decide the dtype, unless a lower rung has a higher category (bool, integer, float,
    complex). Besides the join: functions of floats and `/` convert integers to float32, but many
    functions refuse integers. Sums accumulate integers in int64. Numbers wrap.
    """

    library = "PyTorch"
    composes = frozenset(
        {
            *("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"),
            *("softmax", "logsoftmax", "sort", "argsort", "cumulative_sum", "cumulative_prod"),
            *("flip", "pow"),
        }
    )
    in_place = IN_PLACE
    bool_arithmetic = frozenset({"add", "multiply", "outer", "sign"})
    exceptions = by_op(
        {
            "square": {DType.bool: DType.int64},
            "clip argmax argmin searchsorted": {DType.bool: None},
            "sign round": _NO_COMPLEX,
            "silu gelu softplus softmax logsoftmax layer_norm": _NO_INTS,
            "hypot heaviside logaddexp nextafter": _NO_INTS,
            "as_complex": dict.fromkeys(
                d for d in TORCH_LATTICE if d not in (DType.float32, DType.float64)
            ),
        }
    )

    complex_dtypes: Mapping[DType, DType | None] = _COMPLEX

    releases: Mapping[str, Mapping[str, object]] = {
        "2.13": {"complex_dtypes": {**_COMPLEX, DType.bfloat16: DType.complex64}},
        "2.14": {},
    }

    cell = LibraryRules.cell

    def entering(self, scalar: Any) -> Any:
        """Return the Python number to which PyTorch converts a NumPy scalar.

        NumPy's integers become ints. A scalar that is a Python complex number, as np.complex128 is,
        becomes a complex number. Every other scalar becomes a double (c10::Scalar of
        torch/csrc/utils/python_arg_parser): a float for np.bool_, the real part for np.complex64.
        """
        number = scalar.item()
        if isinstance(scalar, np.integer) and number >= 2**63:
            raise PromotionError(
                f"{self.library} takes a NumPy integer for an int of 64 bits",
                got=f"{scalar!r}",
                fix=f"write {number}, or g.scalar[DType.uint64]({number})",
            )
        return number if isinstance(scalar, (np.integer, complex)) else float(number.real)

    def exponent_of(self, base: Typed | None, exponent: Any) -> tuple[Any, int | None]:
        """Return the exponent and the number of factors, which is None for a power by the op pow.

        Only a bool exponent of a bool base is a number of factors. PyTorch has no other power of
        bools.
        """
        products = base is not None and base.dtype is DType.bool and isinstance(exponent, bool)
        return exponent, int(exponent) if products else None

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return 1 for True beside 0-d tensors that promote with no bool, else the value itself.

        A bool stands on the rung of 0-d tensors and joins them. A number stands on a lower rung.
        """
        if type(value) is not bool or not place.partners or place.op == "subtract":
            return value
        below = all(not x.rank and _is_lonely(x.dtype) for x in place.partners)
        return int(value) if below else value

    def common(self, operands: Sequence[Typed]) -> DType:
        """Join each rung in the order of its operands, then combine the rungs, lowest first."""
        rungs: tuple[list[DType], ...] = ([], [], [])  # numbers, 0-d, n-d
        for operand in operands:
            dtype = self.supported(operand.dtype)
            rungs[0 if dtype.weak else 2 if operand.rank else 1].append(_NUMBERS.get(dtype, dtype))
        lowest, *others = [self.join(tuple(rung)) for rung in rungs if rung]
        dtype_found: DType | None = lowest
        for higher in others:
            dtype_found = self._combine_categories(dtype_found, higher)
        if dtype_found is None:
            dtypes = [operand.dtype for operand in operands]
            raise self.refusal(
                dtypes, "they meet in complex32 or bcomplex32, which graphir does not have"
            )
        return dtype_found

    def _combine_categories(self, lower: DType | None, higher: DType) -> DType | None:
        """combine_categories of PyTorch.

        None stands for complex32 or bcomplex32, which a higher rung may outweigh.
        """
        if lower is not None and _category(lower) <= _category(higher):
            return higher
        if lower is not None and not lower.is_complex:
            return self.join((higher, lower))
        if higher.narrow:
            raise self.refusal((higher, lower or DType.weak_complex), "8 bits have no complex form")
        return (
            higher
            if higher.is_complex
            else self.complex_dtypes[higher]
            if higher.is_float
            else lower
        )

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Return the left fold by promoteTypes.

        The order counts: int8, float32, uint16 join, whereas int8, uint16, float32 do not.
        """
        return reduce(self._promote_pair, dtypes)

    def _promote_pair(self, a: DType, b: DType) -> DType:
        for dtype, other in ((a, b), (b, a)) if a is not b else ():
            if dtype.narrow:
                raise self.refusal((a, b), "floats of 8 bits promote with none")
            if dtype in _WITHOUT_INTS and not other.is_float:
                raise self.refusal((a, b), "uint16, uint32 and uint64 promote with floats alone")
        return TORCH_LATTICE.join(a, b)

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the join of an op's operands.

        Some ops require operands of one dtype, and `-` refuses bool even beside other dtypes.
        """
        dtypes = tuple(dict.fromkeys([operand.dtype for operand in operands]))
        if op in _ALIKE and len(dtypes) > 1:
            raise self.refusal(dtypes, f"{op} takes operands of one dtype")
        if op == "subtract" and DType.bool in dtypes:
            self.boolean(op)
        return self.common(self._clamp_operands(operands) if op == "clip" else operands)

    def _clamp_operands(self, operands: Sequence[Typed]) -> Sequence[Typed]:
        """Return the operands of clamp.

        A 0-d tensor bound beside a number bound counts as a number.
        """
        x, *bounds = operands
        numbers = [operand.dtype.weak for operand in bounds]
        if all(numbers) or not any(numbers):
            return operands
        tensor = bounds[numbers.index(False)]
        if tensor.rank:
            raise PromotionError(
                f"clip takes two numbers or two tensors for bounds under {self.name!r}, not a "
                f"number and {tensor.dtype} of rank {tensor.rank}",
                fix="make a tensor of the number by g.scalar(...)",
            )
        kinds = [_category(operand.dtype) for operand in bounds]
        least = 0 if x.dtype is DType.bool else 1  # a bool bound counts as an int unless x is bool
        return [x, *(Operand(_AS_NUMBER[max(kind, least)], 0) for kind in kinds)]

    def _true_bound(self, place: Place) -> DType:
        """Return the dtype of True as a bound of clamp: bool, or weak_int beside a tensor bound.

        A 0-d bool tensor is no such bound.
        """
        tensors = [operand for operand in place.others[1:] if not isinstance(operand, Number)]
        has_arrays = any(operand.rank or operand.dtype is not DType.bool for operand in tensors)
        return DType.weak_int if has_arrays else DType.bool

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the weak dtype of a number, or uint64 for an int from 2**63 on.

        A few ops check the range: the number must fit the dtype in which all operands meet. The
        base of pow wraps instead.
        """
        wide = isinstance(value, int) and 2**63 <= value < 2**64
        dtype = DType.uint64 if wide else super().literal(value, place)
        op = place.op
        if (
            op == "clip"
            and wide
            and any(not isinstance(operand, Number) for operand in place.others[1:])
        ):
            raise self.misfit(value, DType.int64)
        if op == "clip" and place.at and isinstance(value, bool):
            dtype = self._true_bound(place)
        if op in _RANGE_CHECKED and (op != "pow" or place.at):
            operands_taken = [
                Operand(dtype, 0) if i == place.at else x for i, x in enumerate(place.operands)
            ]
            dtype_found = self.common(
                self._clamp_operands(operands_taken) if op == "clip" else operands_taken
            )
            if op == "pow" and dtype_found.is_integer:
                self.exponent(value, dtype_found)
            if dtype_found in _RANGE_CHECKED[op] and not _converts(value, dtype_found):
                raise self.misfit(value, dtype_found)
        return dtype

    def floating(self, dtype: DType, op: str) -> DType:
        """Return float32 for bool and integers; a float or complex dtype stays."""
        return dtype if dtype.is_inexact else DType.float32

    def storable(self, source: DType, target: DType) -> bool:
        """torch.can_cast: whether the target's category is the source's or a higher one."""
        return _category(source) <= _category(target)

    def accumulator(self, dtype: DType, op: str) -> DType:
        """Return the dtype; refuse bool in cumsum and cumprod, which have no kernel for bool."""
        if dtype is DType.bool and op in ("cumulative_sum", "cumulative_prod"):
            raise PromotionError(
                f"{op} does not accumulate in bool under {self.name!r}",
                fix="write dtype=DType.int64, and != 0 of the result",
            )
        return dtype

    def average(self, dtype: DType, op: str) -> DType:
        """Return a float or complex dtype; refuse integers."""
        return PromotionRules.floating(self, dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """Return int64 for bool and all integers, even uint64."""
        return DType.int64 if dtype.is_integer or dtype is DType.bool else dtype

    def truth(self, dtype: DType, op: str) -> DType:
        """Return bool; every nonzero value is true, but where's condition must be bool or uint8."""
        if op == "where" and dtype not in (DType.bool, DType.uint8):
            return super().truth(dtype, op)
        return DType.bool

    def index_dtype(self, dtype: DType, op: str) -> DType:
        """Return the dtype of indices: int64, or also int32 except for take_along."""
        if dtype is DType.int64 or (dtype is DType.int32 and op != "take_along"):
            return dtype
        raise PromotionError(
            f"the indices of {op} are int64 under {self.name!r}",
            got=f"{dtype}",
            fix=".cast(DType.int64)",
        )

    def inspection(self, dtype: DType, op: str) -> DType:
        """Return any dtype; imag accepts complex numbers alone."""
        if op == "imag" and not dtype.is_complex:
            raise PromotionError(
                f"imag takes complex numbers under {self.name!r}",
                got=str(dtype),
                fix="use 0, the imaginary part of a real number",
            )
        return dtype

    def verdict(self, dtype: DType, op: str) -> DType:
        """Return bool; any and all of uint8 return uint8, as before PyTorch had bool."""
        return dtype if dtype is DType.uint8 and op in ("any", "all") else DType.bool


_AS_NUMBER = (DType.bool, DType.weak_int, DType.weak_float, DType.weak_complex)


def _is_lonely(dtype: DType) -> bool:
    """Whether a dtype promotes with no other integer dtype or bool."""
    return dtype in _WITHOUT_INTS or dtype.narrow


def _category(dtype: DType) -> int:
    """Return the category: 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    return 3 if dtype.is_complex else 2 if dtype.is_float else int(dtype.is_integer)


def _converts(value: Any, dtype: DType) -> bool:
    """Whether a number converts to a dtype without overflow (c10::overflows).

    Unsigned dtypes accept negative ints down to minus their greatest value.
    """
    if isinstance(value, complex):
        return _converts(value.real, dtype) and _converts(value.imag, dtype)
    if dtype.is_integer:
        low = -dtype.max if dtype.family == "uint" else dtype.min
        return low <= value <= dtype.max
    return abs(value) <= dtype.part.max or not math.isfinite(value)


TORCH = Torch(
    "torch",
    "PyTorch: n-d tensors outweigh 0-d ones, these Python numbers, within a category.",
    TORCH_LATTICE,
    "PyTorch 2.13 source and documentation, torch.result_type",
    dtypes=(*TORCH_LATTICE, *_NUMBERS),
)
