"""The rules of JAX: jax.numpy (with 64 bits, without them, strict, that of 2020), and jax.lax.

Sources: JAX documentation, "Type promotion semantics", and JEP 9407; of JAX 0.10.2 to 0.12.0
jax/_src: dtypes.py (the lattices, to_inexact_dtype, to_numeric_dtype), numpy/ufuncs.py,
numpy/reductions.py, nn/functions.py, lax/lax.py (naryop_dtype_rule). The tests measure every rule
on each (tests/peers/test_peer_jax.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from graphir.dtype_lattices.published import lattice_of_text, published
from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.promotion.library import COMPLEX, UPDATES, LibraryRules, by_op
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.rules import Family, PromotionRules
from graphir.promotion.scalars import fits, identity_key, number_text

SMALL_INTS = (DType.int2, DType.int4, DType.uint2, DType.uint4)
SMALL_FLOATS = tuple(dtype for dtype in DType if dtype.is_float and dtype.narrow)
INTS = tuple(dtype for dtype in DType if dtype.is_integer and dtype.storage.name == str(dtype))
FLOATS = (DType.bfloat16, DType.float16, DType.float32, DType.float64)

_SMALL_NAMES = ", ".join(dtype.short for dtype in SMALL_FLOATS)
JAX_LATTICE = lattice_of_text(
    "jax",
    "bool < i* < u8, i8, i2, i4, u2, u4; u8 < i16, u16; u16 < i32, u32; u32 < i64, u64; u64 < f*;"
    f"i8 < i16 < i32 < i64 < f* < bf16, f16, c*, {_SMALL_NAMES}; bf16, f16 < f32 < f64, c64;"
    "f64 < c128; c* < c64 < c128",
)
"""JAX's _type_promotion_lattice.

No dtype is above the 2- and 4-bit integers and the 4- to 8-bit floats.
"""

STRICT_LATTICE = lattice_of_text(
    "jax_strict",
    "bool; i* < f*, i8, i16, i32, i64, u8, u16, u32, u64, i2, i4, u2, u4;"
    f"f* < c*, bf16, f16, f32, f64, {_SMALL_NAMES}; c* < c64, c128",
)
"""_type_promotion_lattice in strict mode. A weak dtype joins with its own kind and higher kinds."""

_None: TypeAlias = dict[DType, None]
NO_INTS: _None = dict.fromkeys((DType.bool, *INTS, DType.weak_int))
NO_COMPLEX: _None = dict.fromkeys((*COMPLEX, DType.weak_complex))
NO_SMALL_INTS: _None = dict.fromkeys(SMALL_INTS)
NO_SMALL_FLOATS: _None = dict.fromkeys(SMALL_FLOATS)


class Jax(LibraryRules):
    """jax.numpy with 64 bits on.

    Besides the join: `/` and functions of floats convert integers of up to 32 bits to float32, and
    integers of 64 bits to float64. Sums and products accumulate integers in 64 bits. `+` of bools
    is or, `*` of bools is and. Complex numbers have an order. scatter keeps the dtype of the array
    that it updates.

    A literal is weak. An int literal has 64 bits and wraps; a float literal rounds, to infinity if
    it is out of range.

    An int or a NumPy integer of rank 0 is a static exponent, and JAX computes such a power by
    multiplication. A symbol, even a constant, is a traced exponent, as under jax.jit. Eager JAX
    would read the value of a 0-d array.
    """

    library = "JAX"
    of_numbers = False  # JAX has weak arrays, and its lattice types them
    instead = "jax"
    composes = frozenset({"pow"})
    exceptions = by_op(
        {
            "negative sign round subtract": {DType.bool: None},
            "square pow floor_divide remainder fmod left_shift right_shift": {
                DType.bool: DType.int32
            },
            "pow": {DType.weak_int: DType.int64, **NO_SMALL_INTS},
            "relu": {DType.bool: DType.weak_int},
            "rsqrt sigmoid silu": NO_INTS,
            "softmax logsoftmax": {DType.bool: None},
            "softplus": {DType.bool: DType.weak_float},
            "logsoftmax": {DType.int4: None, DType.uint4: None},
            "sum prod cumulative_sum": NO_SMALL_INTS,
            "abs": {DType.int2: None, DType.int4: None},
            "signbit copysign": NO_SMALL_FLOATS,
        }
    )
    inexact: Mapping[DType, DType] = {
        **dict.fromkeys((DType.bool, *INTS), DType.float32),
        DType.int64: DType.float64,
        DType.uint64: DType.float64,
        DType.weak_int: DType.weak_float,
    }
    """to_inexact_dtype: the float dtype to which JAX converts bool and each integer dtype."""

    strong = frozenset(
        {
            *("log10", "deg2rad", "heaviside", "gelu", "softmax", "logsoftmax"),
            *("mean", "var", "std", "max", "min"),
        }
    )
    """The ops that give a weak operand's default dtype instead of a weak dtype."""

    strong_hypot = False
    """Whether hypot with an n-d operand gives the default dtype instead of a weak one."""

    releases: Mapping[str, Mapping[str, object]] = {
        "0.10": {"strong": strong | {"log2"}, "strong_hypot": True},
        "0.11": {"strong_hypot": True},
        "0.12": {},
    }

    unordered = frozenset({"clip", "argmax", "argmin"})
    """The ops that refuse complex numbers; all other ordering ops accept them."""

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the join; the power of a weak base with an integer of INTS is not weak.

        The ops of UPDATES return the dtype of the array that they update.
        """
        dtype = self.common(operands)
        if op in UPDATES:
            return self.updated_dtype(op, *operands)
        if op == "hypot" and self.strong_hypot and any(operand.rank for operand in operands):
            return self.concrete_dtype(dtype)
        if op == "pow" and operands[0].dtype.weak and operands[1].dtype in INTS:
            return self.concrete_dtype(dtype)
        return dtype

    def exponent_of(self, base: Typed | None, exponent: Any) -> tuple[Any, int | None]:
        """Return the exponent and, for a power computed by multiplication, the number of factors.

        A NumPy integer of rank 0 becomes an int, because JAX reads such an exponent while it traces
        (jnp.power). JAX raises weak ints and integers of 2 and 4 bits to a power by multiplication
        alone. For other bases the second item is None.
        """
        number: Any = exponent
        static = issubclass(type(number), (np.ndarray, np.generic)) and number.dtype.kind in "iu"
        exponent = number.item() if static and not number.ndim else number
        dtype = None if base is None else self.common([base])
        by_multiplication = dtype in (DType.weak_int, *SMALL_INTS)
        if dtype is None or not (by_multiplication and isinstance(exponent, int)):
            return exponent, None
        self.exponent(exponent, dtype)
        return exponent, _exponent(int(exponent), self.concrete_dtype(dtype))

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return an equivalent exponent in the base's dtype, or clip's lower bound, wrapped.

        JAX multiplies as often as an int exponent says (lax.integer_pow), in the dtype of the base.
        A bool base has a bool exponent here; the two compute in int32. clip is a maximum followed
        by a minimum, so the lower bound meets x alone, even if the upper bound is a float.
        """
        if not isinstance(value, int) or place.op not in ("pow", "clip") or place.at != 1:
            return value
        first = self.common(place.operands[:1])
        if place.op == "clip":
            self.literal(value, place)
            wraps = first in INTS and first.bits < self.concrete_dtype(DType.weak_int).bits
            return _wrap(value, first) if wraps and type(value) is int else value
        value = int(value)  # of True
        if (
            first.is_float
            and value % 2 == 0
            and not fits(value, self.concrete_dtype(DType.weak_int))
        ):
            return (
                float(value) if abs(value) < 2**1023 else value
            )  # no integer dtype of JAX holds it
        if first.is_inexact:
            return value
        self.exponent(value, first)
        return bool(value) if first is DType.bool else _exponent(value, self.concrete_dtype(first))

    def floating(self, dtype: DType, op: str) -> DType:
        """Return float32 for bool and integers up to 32 bits, float64 for 64 bits.

        The method refuses integers of 2 bits, because JAX has no float for them.
        """
        if dtype.bits == 2:
            raise PromotionError(
                f"{op} takes no {dtype} under {self.name!r}, where that has no float",
                fix="cast first, for example .cast(DType.int8)",
            )
        dtype = self.inexact.get(dtype, dtype)
        return self.concrete_dtype(dtype) if op in self.strong else dtype

    def accumulation(self, dtype: DType, op: str) -> DType:
        """Return int64 or uint64 for integers and int64 for bool.

        cumulative_prod keeps an integer dtype.
        """
        if dtype is DType.bool:
            return DType.int64
        if op == "cumulative_prod" or not dtype.is_integer:
            return self.concrete_dtype(dtype)
        return DType.int64 if dtype.family == "int" else DType.uint64

    def ordering(self, dtype: DType, op: str) -> DType:
        """Return any dtype; complex numbers sort by real part, then by imaginary part.

        The ops in `unordered` refuse complex numbers. The ops in `strong` give a weak dtype's
        default.
        """
        if op in self.unordered:
            return super().ordering(dtype, op)
        return self.concrete_dtype(dtype) if op in self.strong else dtype

    def boolean(self, op: str) -> DType:
        """Return bool: `+` is or, `*` is and."""
        return DType.bool

    def truth(self, dtype: DType, op: str) -> DType:
        """Return bool; every nonzero value is true."""
        return DType.bool

    def position(self, op: str) -> DType:
        """Return int64, or int32 for searchsorted, provided that int32 can count the elements."""
        return DType.int32 if op == "searchsorted" else DType.int64


def _wrap(value: int, dtype: DType) -> int:
    low = int(dtype.min)
    return (value - low) % 2**dtype.bits + low


def _exponent(value: int, dtype: DType) -> int:
    """Return an exponent in the dtype's range that gives every base of the dtype the same power.

    From exponent `bits` on, powers of even bases are 0. Powers of odd bases then repeat with the
    period lambda(2**bits), the Carmichael function.
    """
    bits = dtype.bits
    return value if value < 2 ** (bits - 1) else bits + (value - bits) % max(2, 2 ** (bits - 2))


JAX = Jax(
    "jax",
    "jax.numpy with 64 bits on; weak types are members of the lattice.",
    JAX_LATTICE,
    "JAX documentation; JEP 9407",
)

_DEMOTION = {
    DType.int64: DType.int32,
    DType.uint64: DType.uint32,
    DType.float64: DType.float32,
    DType.complex128: DType.complex64,
}


def demote(dtype: DType) -> DType:
    """Return the dtype that JAX uses instead of a 64-bit dtype when 64 bits are disabled."""
    return _DEMOTION.get(dtype, dtype)


class JaxX32(Jax):
    """jax.numpy by default, with 64 bits disabled: 32-bit dtypes replace 64-bit ones.

    complex64 replaces complex128. JAX demotes arrays on entry, so JAX never holds a 64-bit array.
    Here an input or a cast may have 64 bits, and the first op that computes with it demotes it.
    """

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return demote(join(demote a, demote b))."""
        narrow = [Operand(demote(operand.dtype), operand.rank) for operand in operands]
        return demote(super().common(narrow))

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """Return the dtype of `jax`, demoted to 32 bits."""
        return demote(super().family_dtype(family, dtype, op))

    def position(self, op: str) -> DType:
        """Return int32."""
        return DType.int32

    def concrete_dtype(self, weak: DType) -> DType:
        """Return int32, float32 or complex64 for a weak dtype."""
        return demote(super().concrete_dtype(weak)) if weak.weak else weak

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the weak dtype; raise PromotionError for an int beyond 32 bits.

        JAX raises OverflowError for such an int, whatever dtype its partners have.
        """
        dtype = super().literal(value, place)
        if dtype is DType.weak_int and not -(2**31) <= value < 2**31:
            raise PromotionError(
                f"the literal {number_text(value)} does not fit the 32 bits of an int under "
                f"{self.name!r}",
                fix="write it as a float, or build the graph under rules='jax'",
            )
        return dtype


JAX_X32 = JaxX32("jax_x32", "jax.numpy with 64 bits off, as it comes.", JAX_LATTICE, JAX.source)


class JaxStrict(Jax):
    """jax.numpy with jax_numpy_dtype_promotion="strict"."""

    exceptions = by_op(
        {**Jax.exceptions, "relu softplus": {DType.bool: None}, "logsoftmax": NO_INTS}
    )
    """jax.nn.relu compares with the int 0, and log_softmax subtracts a float from x."""

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the dtype of the non-strict rules.

        The updates of UPDATES must already have that dtype.
        """
        dtype = super().meeting(operands, op)
        if op in UPDATES and self.concrete_dtype(self.common(operands)) is not self.concrete_dtype(
            dtype
        ):
            dtypes = [operand.dtype for operand in operands]
            raise self.refusal(dtypes, f"{op} would convert {dtypes[1]} to {dtype}")
        return dtype


JAX_STRICT = JaxStrict(
    "jax_strict",
    'jax_numpy_dtype_promotion="strict": only what is weak gives way.',
    STRICT_LATTICE,
    JAX.source,
)


# -- The rules of jax.lax, which has no implicit conversion
#
# Source: jax/_src/lax/lax.py of 0.10.2, measured (tests/peers/test_peer_jax.py).

_ALONE = ", ".join(d.short for d in (DType.bool, *INTS, *FLOATS, *COMPLEX, *SMALL_FLOATS))
LAX_LATTICE = lattice_of_text("jax_lax", f"{_ALONE}; i* < i64; f* < f64; c* < c128")
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


# -- The rules of JAX in 2020, before it had weak types


class Jax2020(Jax):
    """The promotion table of 2020, without weak types; a signed dtype with uint64 gives float64.

    Operands join from left to right, and this fold is not associative. A Python scalar takes part
    only if its kind is higher than the kind of every array; it then counts as int64, float64 or
    complex128. Functions of floats convert every integer dtype to float64. Sources: jax/dtypes.py
    (result_type) and jax/numpy/lax_numpy.py (_to_inexact_dtype) of 2020.
    """

    releases: Mapping[str, Mapping[str, object]] = {}
    of_numbers = True
    inexact = dict.fromkeys((DType.bool, *INTS), DType.float64)

    def cell(self, value: Any, op: str) -> Hashable:
        """Return the interval between dtype limits that contains a number.

        Each exponent has a cell of its own.
        """
        return identity_key(value) if op == "pow" else LibraryRules.cell(self, value, op)

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the join of the arrays and of the scalars with a higher kind.

        The result is never weak.
        """
        arrays = [operand for operand in operands if not operand.dtype.weak]
        highest = max((_kind(operand.dtype) for operand in arrays), default=())
        scalars = [
            Operand(self.concrete_dtype(operand.dtype), operand.rank)
            for operand in operands
            if operand.dtype.weak and _kind(operand.dtype) > highest
        ]
        return super().common([*arrays, *scalars])

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Fold the dtypes from left to right; a join that is weak today has 64 bits."""
        return reduce(lambda a, b: self.concrete_dtype(JAX_LATTICE.join(a, b)), dtypes)

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """Return today's dtype, with the default dtype for a weak one."""
        return self.concrete_dtype(super().family_dtype(family, dtype, op))


def _kind(dtype: DType) -> tuple[bool, ...]:
    """Sort key of a dtype: complex numbers, floats, integers, then bool, from highest to lowest."""
    return dtype.is_complex, dtype.is_float, dtype.is_integer


JAX_2020 = Jax2020(
    "jax_2020",
    "jax.numpy before weak types; not associative.",
    source="JAX documentation of 2020, Type promotion semantics",
    dtypes=[d for d in JAX_LATTICE if not d.weak and not d.narrow],
)


# -- The designs that JEP 9407 weighs: partial orders in which some dtypes have no common dtype


class Jep(LibraryRules):
    """The joins of one design; NoUpperBound and SeveralUpperBounds are different errors.

    The JEP defines joins alone. Where `/`, a function or a mean of integers needs a float, this
    class takes the join of the integer dtype with a Python float. Option 3 has such a join; the
    other options have none. Literals are weak. None of the lattices contains bool, so bool serves
    truth values alone.
    """

    library = "JEP 9407"
    of_numbers = False  # the lattices contain the weak dtypes

    def floating(self, dtype: DType, op: str) -> DType:
        """Return the join of the dtype with a Python float."""
        if dtype.is_inexact:
            return dtype
        return self.common((Operand(dtype), Operand(DType.weak_float)))


_WHAT = (
    "no edges from integers to floats: these mix with literals only",
    "an integer meets the float of the next width: int8 with float16 is float16",
    "an integer meets the float of its own width: int16 with float16 is float16",
    "every integer lies below every float: JAX's way, without bool, bfloat16 and uint64",
)

JEP_OPTIONS = tuple(
    Jep(f"jep_option_{i}", f"Option {i}: {doc}.", published(f"jep_option{i}"), "JEP 9407")
    for i, doc in enumerate(_WHAT)
)
