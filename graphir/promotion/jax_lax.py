"""The rules of jax.lax, which converts nothing.

Source: jax/_src/lax/lax.py of 0.10.2, measured (tests/peers/test_peer_jax.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.lattice.order import Lattice
from graphir.promotion.jax import (
    FLOATS,
    INTS,
    JAX,
    NO_COMPLEX,
    NO_INTS,
    NO_SMALL_FLOATS,
    SMALL_FLOATS,
    SMALL_INTS,
    Jax,
)
from graphir.promotion.library import COMPLEX, by_op
from graphir.promotion.operands import Place, Typed
from graphir.promotion.rules import PromotionRules

LAX_LATTICE = Lattice(
    "jax_lax",
    {
        **{dtype: [] for dtype in (DType.bool, *INTS, *FLOATS, *COMPLEX, *SMALL_FLOATS)},
        DType.weak_int: [DType.int64],
        DType.weak_float: [DType.float64],
        DType.weak_complex: [DType.complex128],
    },
)
"""No promotion: what is weak is just of its default dtype."""


class JaxLax(Jax):
    """jax.lax with 64 bits on: operands have one dtype, and ops take those that XLA's take.

    Sums and products keep the dtype, functions take floats, any and all bool. `divide` takes no
    integers, since lax.div of them truncates, which no `/` does; contractions take operands of one
    dtype, though lax.dot_general takes any.
    """

    exceptions = by_op(
        {
            "pow": NO_INTS,
            "floor ceil round is_finite": NO_INTS | NO_COMPLEX,
            "abs": dict.fromkeys(d for d in INTS if d.family == "uint" or d in SMALL_INTS),
            "conj": NO_INTS
            | dict.fromkeys((*FLOATS, *SMALL_FLOATS))
            | {
                DType.float32: DType.complex64,
                DType.float64: DType.complex128,
                DType.weak_float: DType.weak_complex,
            },
            "as_complex": {DType.float16: None, DType.bfloat16: None, **NO_SMALL_FLOATS},
            "matmul tensordot": {DType.bool: DType.bool},
        }
    )
    strong = frozenset[str]()
    unordered = frozenset({"argmax", "argmin", "less", "less_equal", "greater", "greater_equal"})

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """The one dtype of all; of a float or complex to the power of any integer the base's."""
        if op == "pow" and operands[1].dtype.is_integer and not operands[0].dtype.is_integer:
            dtype = self.common(operands[:1])
            return self.concrete_dtype(dtype) if operands[1].dtype in INTS else dtype
        return self.common(operands)

    def exponent_of(self, base: Typed | None, exponent: Any) -> tuple[Any, int | None]:
        """Itself, for the op pow."""
        return exponent, None

    def literal_value(self, value: Any, place: Place) -> Any:
        """Itself: lax.pow takes an exponent as it is."""
        return value

    def boolean(self, op: str) -> DType:
        """Refused."""
        raise PromotionError(
            f"{op} does not take bool under {self.name!r}: jax.lax computes with numbers alone",
            fix="use | or &, or .cast(DType.int32) first",
        )

    def floating(self, dtype: DType, op: str) -> DType:
        """Integers are refused."""
        return PromotionRules.floating(self, dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """The dtype itself."""
        return PromotionRules.accumulation(self, dtype, op)

    def truth(self, dtype: DType, op: str) -> DType:
        """Bool alone."""
        return PromotionRules.truth(self, dtype, op)

    def inspection(self, dtype: DType, op: str) -> DType:
        """Any dtype; real and imag take complex numbers alone."""
        if op in ("real", "imag") and not dtype.is_complex:
            raise PromotionError(
                f"{op} takes complex numbers under {self.name!r}, not {dtype}", fix="leave it out"
            )
        return dtype


JAX_LAX = JaxLax("jax_lax", "jax.lax: nothing is converted.", LAX_LATTICE, JAX.source)
