"""The rules of jax.lax, which has no implicit conversion.

Source: jax/_src/lax/lax.py of 0.10.2, measured (tests/peers/test_peer_jax.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.errors import PromotionError
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
"""A lattice without promotion: each weak dtype joins with its default dtype alone."""


class JaxLax(Jax):
    """jax.lax with 64 bits enabled: operands share one dtype, one that XLA's op accepts.

    Sums and products keep the dtype. Functions accept floats; any and all accept bool. `divide`
    refuses integers, because lax.div truncates and `/` never does. Contractions require operands of
    one dtype, although lax.dot_general accepts any dtypes.
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
    releases: Mapping[str, Mapping[str, object]] = {"0.10": {}, "0.11": {}, "0.12": {}}
    unordered = frozenset({"argmax", "argmin", "less", "less_equal", "greater", "greater_equal"})

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the operands' one dtype; a float or complex base may have an integer exponent."""
        if op == "pow" and operands[1].dtype.is_integer and not operands[0].dtype.is_integer:
            dtype = self.common(operands[:1])
            return self.concrete_dtype(dtype) if operands[1].dtype in INTS else dtype
        return self.common(operands)

    def exponent_of(self, base: Typed | None, exponent: Any) -> tuple[Any, int | None]:
        """Return the exponent unchanged; `**` is always the op pow."""
        return exponent, None

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return the value unchanged: lax.pow takes every exponent as it is."""
        return value

    def boolean(self, op: str) -> DType:
        """Raise PromotionError: jax.lax has no arithmetic of bools."""
        raise PromotionError(
            f"{op} does not take bool under {self.name!r}: jax.lax computes with numbers alone",
            fix="use | or &, or .cast(DType.int32) first",
        )

    def floating(self, dtype: DType, op: str) -> DType:
        """Return a float or complex dtype unchanged; refuse integers."""
        return PromotionRules.floating(self, dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """Return a number's dtype unchanged; refuse bool."""
        return PromotionRules.accumulation(self, dtype, op)

    def truth(self, dtype: DType, op: str) -> DType:
        """Return bool; refuse every other dtype."""
        return PromotionRules.truth(self, dtype, op)

    def inspection(self, dtype: DType, op: str) -> DType:
        """Return any dtype unchanged; real and imag accept complex numbers alone."""
        if op in ("real", "imag") and not dtype.is_complex:
            raise PromotionError(
                f"{op} takes complex numbers under {self.name!r}",
                got=f"{dtype}",
                fix="leave it out",
            )
        return dtype


JAX_LAX = JaxLax("jax_lax", "jax.lax: nothing is converted.", LAX_LATTICE, JAX.source)
