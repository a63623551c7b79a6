"""The rules of MAX: its published lattice, `max`, and today's MAX as measured, `max_strict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from graphir.dtype_lattices.published import lattice_of_text
from graphir.dtypes import DType
from graphir.errors import PromotionError, RulesFix
from graphir.promotion.library import UPDATES, LibraryRules
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.rules import PromotionRules

MAX_LATTICE = lattice_of_text(
    "max",
    "bool < i8, u8; i8 < i16 < i32 < i64 < f16; u8 < u16, i16; u16 < u32, i32; u32 < u64, i64;"
    "u64 < f16; index, addr < u64; f16 < bf16 < f32 < tf32 < f64",
)
"""MAX 24.1, Mojo API reference, max.graph.type_promotion."""

MAX = PromotionRules(
    "max",
    "MAX's published lattice: total over 16 dtypes, every result the join.",
    MAX_LATTICE,
    "MAX 24.1 Mojo API reference, max.graph.type_promotion",
)


# -- The rules of today's MAX, measured op by op from its graph builder
#
# MAX 26.7 joins two tensors in two independent steps: the wider family wins, and the wider width
# wins. MAX refuses a join that does not hold both operands exactly. Each op then has a rule of its
# own. tests/golden/max_ops.json holds the measurement, every op on all pairs of dtypes;
# tests/peers/test_peer_max.py repeats the measurement with the live library.
#
# The builder infers types for more ops than MAX compiles: it types `sin` of int32 as int32, and the
# compiler then refuses the model. Here too a symbol has the builder's type. No kernel computes such
# a symbol, so lowering and `interpret` refuse it and name its source line.

_NARROW = (
    DType.float4_e2m1fn,
    DType.float6_e2m3fn,
    DType.float6_e3m2fn,
    DType.float8_e8m0fnu,
    DType.float8_e4m3fn,
    DType.float8_e4m3fnuz,
    DType.float8_e5m2,
    DType.float8_e5m2fnuz,
)

# The wider family and the wider width win independently: uint8 with int8 asks for int8.
_NARROW_NAMES = ", ".join(dtype.short for dtype in _NARROW)
MAX_TODAY_LATTICE = lattice_of_text(
    "max_strict",
    f"bool < u8, {_NARROW_NAMES}; u8 < i8, u16; u16 < i16, u32; u32 < i32, u64; u64 < i64;"
    "i8 < i16 < i32, f16; i32 < i64, f32; i64 < f64;"
    f"{_NARROW_NAMES} < f16 < bf16 < f32 < f64",
)
"""Measured from MAX 26.7: `add` on all pairs (tests/golden/max_today.json)."""

_LOSS_ALLOWED = frozenset({DType.bool, *_NARROW})

_PROMOTING = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
        *("maximum", "minimum", "where", "outer"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    }
)
"""The ops that convert a Python scalar or NumPy array to the dtype of the tensor beside it."""

_OF_ONE_DTYPE = frozenset({"concat", "stack", *UPDATES}) - {"index_add"}
"""The ops whose operands must already share one dtype."""

COMPOSED_OPS = frozenset({"affine_view", "item", "slice_update", "index_update"})
"""Ops that MAX lacks, and whose decompositions consist of slice, concat, scatter and the like."""

_MEASURED_OPS = frozenset(
    {
        *_PROMOTING,
        *_OF_ONE_DTYPE,
        *("matmul", "layer_norm", "negative", "abs", "relu", "floor", "ceil", "trunc", "round"),
        *("sqrt", "rsqrt", "exp", "log", "log1p", "sin", "cos", "acos", "tanh", "atanh", "erf"),
        *("sigmoid", "silu", "gelu", "is_nan", "is_inf", "logical_not", "bitwise_invert", "cast"),
        *("sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin"),
        *("cumulative_sum", "softmax", "logsoftmax", "argsort"),
        *("reshape", "broadcast_to", "rebind", "transpose", "permute", "squeeze", "unsqueeze"),
        *("slice", "pad", "tile", "repeat", "gather", "shape_of"),
        *("input", "constant", "full", "range"),
    }
)
"""The ops of the catalogue that MAX 26.7 has."""

# The range of ints that each narrow float accepts.
# Source: dtype_promotion.py, _DTYPE_MIN_AND_MAX_FULL_PRECISION.
_INT_LIMITS = {
    DType.float8_e8m0fnu: (1, 2**127),
    DType.float8_e4m3fn: (-448, 448),
    DType.float8_e4m3fnuz: (-240, 240),
    DType.float8_e5m2: (-72089, 72089),
    DType.float8_e5m2fnuz: (-57344, 57344),
    DType.float4_e2m1fn: (-6, 6),
    DType.float6_e2m3fn: (-7, 7),
    DType.float6_e3m2fn: (-28, 28),
}
_INDICES = {
    "gather": tuple(d for d in MAX_TODAY_LATTICE if not d.is_float),
    **dict.fromkeys(UPDATES, (DType.int32, DType.int64)),
}


class Strict(LibraryRules):
    """Today's MAX: a join is allowed only if it holds every operand exactly.

    `join` checks exactness once, after all operands have joined. Bool and the 4- to 8-bit floats
    are exempt: MAX widens even float8_e8m0fnu to float16, which does not hold all its values. A
    Python scalar, NumPy scalar or NumPy array takes the dtype of the tensor beside it. Ints must
    lie in the tensor dtype's exact range; floats convert to any float dtype unchecked.
    """

    library = "MAX"
    of_numbers = False
    unconverted = frozenset({"layer_norm"})
    types_uncomputed = True

    def admit(self, op: str, attrs: Mapping[str, Any]) -> None:
        """Refuse ops and dtype attributes that MAX lacks, and constants narrower than a byte."""
        if op not in _MEASURED_OPS | COMPOSED_OPS:
            raise PromotionError(
                f"{op} is not measured under {self.name!r}, because MAX 26.7 has no such op",
                fix=RulesFix("rules='max'"),
            )
        dtype = attrs.get("dtype")
        if dtype is None:
            return
        if op not in ("input", "constant", "full", "range"):
            raise PromotionError(
                f"{op} takes no dtype under {self.name!r}, since MAX's {op} has none",
                fix=f"cast the operand or the result by .cast(DType.{dtype})",
            )
        if op != "input" and self.supported(dtype).bits < 8 and dtype is not DType.bool:
            raise self._sub_byte(op, dtype)

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Return the join of all dtypes.

        Raise PromotionError if it does not hold each of them exactly.
        """
        result = super().join(dtypes)
        for dtype in dtypes:
            if dtype not in _LOSS_ALLOWED and (witness := dtype.witness(result)) is not None:
                why = f"they would meet in {result}, which does not hold {witness} of {dtype}"
                raise self.refusal(dtypes, why)
        return result

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the join; `/` of integers gives float64, and some ops require one dtype."""
        dtypes = tuple(dict.fromkeys([self.supported(operand.dtype) for operand in operands]))
        if op in _OF_ONE_DTYPE and len(dtypes) > 1:
            raise self.refusal(dtypes, f"the operands of {op} must share one dtype")
        if op == "divide" and all(dtype.is_integer for dtype in dtypes):
            return DType.float64
        return self.common(operands)

    # -- Python scalars, NumPy scalars and NumPy arrays

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the dtype that "max" gives a literal.

        Refuse sub-byte dtypes and ops that take no literal.
        """
        if place.op and place.op not in _PROMOTING:
            raise PromotionError(
                f"{place.op} takes no Python scalar under {self.name!r}",
                fix=f"write g.scalar({value!r}, DType....)",
            )
        dtype = PromotionRules.literal(self, value, place)
        if dtype.bits < 8 and dtype.narrow:
            raise self._sub_byte(f"a literal cannot become {dtype}", dtype)
        return dtype

    def _sub_byte(self, op: str, dtype: DType) -> PromotionError:
        return PromotionError(
            f"under {self.name!r} no constant is narrower than a byte",
            op=op,
            got=str(dtype),
            fix=f"write it in a wider dtype and .cast(DType.{dtype})",
        )

    def fits(self, value: Any, dtype: DType) -> bool:
        """Whether a literal fits `dtype`.

        Ints fit by exact range, bools as the ints 0 and 1. Every float fits every float dtype,
        unchecked.
        """
        if isinstance(value, float):
            return dtype.is_float
        if isinstance(value, int) and dtype in _INT_LIMITS:
            low, high = _INT_LIMITS[dtype]
            return low <= value <= high
        return super().fits(int(value) if isinstance(value, bool) else value, dtype)

    def entering(self, scalar: Any) -> Any:
        """Convert NumPy integers and floats to Python numbers; MAX takes no other NumPy scalar."""
        if isinstance(scalar, np.integer):
            return int(cast("Any", scalar))
        if isinstance(scalar, np.floating):
            return float(cast("Any", scalar))
        raise PromotionError(
            f"MAX takes no {type(scalar).__name__} scalar beside a tensor, so {self.name!r} "
            f"refuses {scalar!r}",
            fix="write g.scalar[DType....](...)",
        )

    def array(
        self, dtype: DType, partners: Sequence[Typed], op: str = "", value: Any = None
    ) -> DType:
        """Return the dtype of the tensor beside a NumPy array.

        The method raises PromotionError unless that dtype holds the array's integers exactly, or if
        MAX takes no such array.
        """
        if not partners:
            return dtype
        target = partners[0].dtype if op == "layer_norm" else self.common(partners)
        if op and op not in _PROMOTING and op != "layer_norm":
            why = f"{op} takes tensors alone"
        elif dtype.storage.isbuiltin != 1 or dtype.is_complex:
            why = f"MAX takes no NumPy array of {dtype}"
        elif dtype is DType.bool and not np.ndim(value):
            why = "MAX takes no 0-d NumPy array of bool"
        elif dtype.is_float and target.is_integer:
            why = f"a float array does not become {target}"
        elif dtype.is_integer and (witness := self._misfit_in(value, target)) is not None:
            why = f"{target} does not hold its element {witness} exactly"
        else:
            return target
        raise PromotionError(
            f"{op or 'promote'}: {why} under {self.name!r}",
            got=f"an array of {dtype} beside {target}",
            fix=f"use g.constant[DType.{dtype}](...), which is a tensor",
        )

    def _misfit_in(self, array: Any, dtype: DType) -> int | None:
        """Return an extreme element of an integer array that does not fit `dtype`, or None."""
        if not np.size(array):
            return None
        extremes = (int(np.min(array)), int(np.max(array)))
        return next((value for value in extremes if not self.fits(value, dtype)), None)

    # -- MAX's dtype rules of single ops

    def boolean(self, op: str) -> DType:
        """Return bool for every op."""
        return DType.bool

    def division(self, dtype: DType, op: str) -> DType:
        """Return the join itself; it is an integer dtype where one operand is bool."""
        return dtype

    def floating(self, dtype: DType, op: str) -> DType:
        """Return the operand's dtype, whichever it is."""
        return dtype

    def average(self, dtype: DType, op: str) -> DType:
        """Return the operand's dtype.

        var and std need a dtype that holds the int 2, since MAX writes `** 2`.
        """
        if op in ("var", "std"):
            self.literal(2, Place((Operand(dtype),)))
        return dtype

    def bitwise(self, dtype: DType, op: str) -> DType:
        """Return bool; refuse other dtypes, because MAX's & | ^ ~ are the logical functions."""
        if dtype is DType.bool:
            return dtype
        raise PromotionError(
            f"{op} takes bool under {self.name!r}, not {dtype}, since MAX's & | ^ ~ are its "
            "logical functions",
            fix="compare first, for example x != 0, or build the graph under rules='max'",
        )

    def index_dtype(self, dtype: DType, op: str) -> DType:
        """Return the dtype of indices: integers or bool for gather, int32 or int64 for UPDATES."""
        if dtype in _INDICES[op]:
            return dtype
        raise PromotionError(
            f"the indices of {op} are {' or '.join(map(str, _INDICES[op][-2:]))} "
            f"under {self.name!r}",
            got=f"{dtype}",
            fix=".cast(DType.int64)",
        )

    def movement(self, dtype: DType, op: str) -> DType:
        """Return the operand's dtype.

        pad makes a constant, so it refuses dtypes narrower than a byte.
        """
        if op == "pad" and dtype.narrow and dtype.bits < 8:
            raise self._sub_byte(op, dtype)
        return dtype


MAX_STRICT = Strict(
    "max_strict",
    "Today's MAX, as its graph builder types each op; a join only where it is exact.",
    MAX_TODAY_LATTICE,
    "measured from MAX 26.7",
)
