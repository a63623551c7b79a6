"""The element types, and the facts about each from which loss is derived.

The set is closed but for float formats of other distributions, which `float_dtype` adds.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

import ml_dtypes
import numpy as np

from graphir.errors import GraphError
from graphir.hints import DTypeName
from graphir.import_names import declared_names, load_declared

Bool: TypeAlias = bool  # inside DType, `bool` is the member
Specials: TypeAlias = Literal["ieee", "fn", "fnuz", "finite", "scale"]
Family: TypeAlias = Literal["bool", "int", "uint", "float", "complex"]


class Float(NamedTuple):
    """A binary float format, after IEEE 754-2019 and the OCP 8-bit and microscaling formats.

    `exponent` and `mantissa` count stored bits, and `bias` is the exponent bias. `specials` names
    the special values: "ieee" has infinities and NaNs; "fn" has NaN at the all-ones pattern alone;
    "fnuz" has one NaN and no negative zero; "finite" has neither infinities nor NaN; "scale" is
    e8m0: powers of two and NaN, without zero or sign.
    """

    exponent: int
    mantissa: int
    specials: Specials = "ieee"
    bias: int = 0

    @property
    def least(self) -> float:
        """The least positive value; it is subnormal where the format has subnormals."""
        return 2.0 ** (1 - self.bias - self.mantissa - (self.specials == "scale"))

    @property
    def max(self) -> float:
        """The greatest finite value."""
        top = 2**self.exponent - 1 - self.bias - (self.specials in ("ieee", "scale"))
        ulps = 2 if self.specials == "fn" else 1
        return float((2 ** (self.mantissa + 1) - ulps) * 2.0 ** (top - self.mantissa))


def _float(exponent: int, mantissa: int, specials: Any = "ieee", bias: int | None = None) -> Float:
    usual = 2 ** (exponent - 1) - (specials != "fnuz")
    return Float(exponent, mantissa, specials, usual if bias is None else bias)


_STORED_AS: dict[str, Any] = {
    "index": np.uint64,
    "address": np.uint64,
    "weak_int": np.int64,
    "weak_float": np.float64,
    "weak_complex": np.complex128,
}


class DType(Enum):
    """An element type. `DType(name)` looks one up by its name or an alias.

    `==` with a DType is identity. `==` with a NumPy dtype, a scalar type or a string is the answer
    of the NumPy dtype that stores the values, and the hash is the hash of that NumPy dtype. So
    programs written for NumPy's dtypes take the same branch. `kind`, `char`, `itemsize`, `name` and
    `type` are NumPy's, and np.dtype converts a DType. `index`, `address`, `tensor_float32` and the
    weak dtypes equal themselves and their names alone, although np.dtype converts each to its
    storage dtype. (np.dtype(np.uint64) == DType.index, in this order, is NumPy's comparison and
    True.)

    The attributes of a member:

    - `family`: bool, int, uint, float or complex;
    - `bits`: the width of a value; `storage`: the NumPy dtype that holds a value;
    - `short`: a name for tables that counts bits (`i16`, `bf16`, `tf32`). `DType(...)` refuses the
      short names that NumPy reads in bytes, such as `i8`;
    - `format`: the float format; for a complex dtype, the format of its parts;
    - `weak`: true for the types of Python scalars;
    - `narrow`: true for the integers of 2 and 4 bits and the floats of 4, 6 and 8 bits;
    - `emulated`: true for a float format that neither NumPy nor ml_dtypes provides. Its values lie
      in float32 arrays and are rounded on entry;
    - `code`: a small int, the dtype's place in this list. Tables on hot paths are indexed by it,
      because hashing and comparing a DType runs Python code and a list index does not.
    """

    bool = "bool", "bool", "bool", 1
    int8 = "int8", "i8", "int", 8
    int16 = "int16", "i16", "int", 16
    int32 = "int32", "i32", "int", 32
    int64 = "int64", "i64", "int", 64
    uint8 = "uint8", "u8", "uint", 8
    uint16 = "uint16", "u16", "uint", 16
    uint32 = "uint32", "u32", "uint", 32
    uint64 = "uint64", "u64", "uint", 64
    index = "index", "index", "uint", 64
    address = "address", "addr", "uint", 64
    float16 = "float16", "f16", "float", 16, _float(5, 10), ("half",)
    bfloat16 = "bfloat16", "bf16", "float", 16, _float(8, 7)
    float32 = "float32", "f32", "float", 32, _float(8, 23), ("single",)
    tensor_float32 = "tensor_float32", "tf32", "float", 19, _float(8, 10), ("tensor_float_32",)
    tensor_float_32 = tensor_float32  # the spelling of MAX's page
    float64 = "float64", "f64", "float", 64, _float(11, 52), ("double",)
    complex64 = "complex64", "c64", "complex", 64, _float(8, 23)
    complex128 = "complex128", "c128", "complex", 128, _float(11, 52)
    weak_int = "weak_int", "i*", "int", 64
    weak_float = "weak_float", "f*", "float", 64, _float(11, 52)
    weak_complex = "weak_complex", "c*", "complex", 128, _float(11, 52)
    int2 = "int2", "i2", "int", 2
    int4 = "int4", "i4", "int", 4
    uint2 = "uint2", "u2", "uint", 2
    uint4 = "uint4", "u4", "uint", 4
    float8_e3m4 = "float8_e3m4", "f8e3m4", "float", 8, _float(3, 4)
    float8_e4m3 = "float8_e4m3", "f8e4m3", "float", 8, _float(4, 3)
    float8_e4m3b11fnuz = "float8_e4m3b11fnuz", "f8e4m3b11", "float", 8, _float(4, 3, "fnuz", 11)
    float8_e4m3fn = "float8_e4m3fn", "f8e4m3fn", "float", 8, _float(4, 3, "fn")
    float8_e4m3fnuz = "float8_e4m3fnuz", "f8e4m3fnuz", "float", 8, _float(4, 3, "fnuz")
    float8_e5m2 = "float8_e5m2", "f8e5m2", "float", 8, _float(5, 2)
    float8_e5m2fnuz = "float8_e5m2fnuz", "f8e5m2fnuz", "float", 8, _float(5, 2, "fnuz")
    float8_e8m0fnu = "float8_e8m0fnu", "f8e8m0fnu", "float", 8, _float(8, 0, "scale")
    float6_e2m3fn = "float6_e2m3fn", "f6e2m3fn", "float", 6, _float(2, 3, "finite")
    float6_e3m2fn = "float6_e3m2fn", "f6e3m2fn", "float", 6, _float(3, 2, "finite")
    float4_e2m1fn = "float4_e2m1fn", "f4e2m1fn", "float", 4, _float(2, 1, "finite")

    def __init__(
        self,
        name: str,  # mypy reads `DType(name)` as a call of this method: hence Any and defaults
        short: str = "",
        family: Family = "uint",
        bits: int = 0,
        format: Float | None = None,  # noqa: A002 -- the field's own word
        aliases: tuple[str, ...] = (),
    ) -> None:
        self._value_ = name
        self.short: str = short
        self.family: Family = family
        self.bits: int = bits
        self.format: Float | None = format
        self.aliases: tuple[str, ...] = aliases
        self.weak: Bool = name.startswith("weak_")
        numpy_type = _STORED_AS.get(name) or getattr(ml_dtypes, name, getattr(np, name, None))
        self.emulated: Bool = numpy_type is None
        self.storage: np.dtype[Any] = np.dtype(numpy_type or np.float32)
        self._equals_name_alone: Bool = numpy_type is None or name in _STORED_AS
        self.dtype: np.dtype[Any] = self.storage  # np.dtype(self) reads this attribute
        self.kind: str = self.storage.kind
        self.char: str = self.storage.char
        self.itemsize: int = self.storage.itemsize
        self.type: type[Any] = self.storage.type
        self._hash: int = hash(name if self._equals_name_alone else self.storage)
        self.code: int = len(type(self))
        self.narrow: Bool = 1 < bits < 8 or (bits == 8 and family == "float")

    def __eq__(self, other: object) -> Bool:
        """Compare by identity with a DType, by NumPy's `==` with a dtype, scalar type or string."""
        if self is other:
            return True
        if isinstance(other, DType):
            return False
        if not isinstance(other, (np.dtype, type, str)):
            return NotImplemented
        if other == self._value_ or self._equals_name_alone:
            return other == self._value_
        return self.storage == other

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def _missing_(cls, value: object) -> DType:
        if isinstance(value, str):
            if (dtype := _names().get(value)) is not None:
                return dtype
            if (declared := load_declared("graphir.dtypes", value)) is not None:
                return cast(DType, declared)
            names = [*_names(), *declared_names("graphir.dtypes")]
            near = [str(d) for d in cls if d.short == value]
            near = near or difflib.get_close_matches(value, names, n=3, cutoff=0.5)
            hint = f"; near it are {', '.join(near)}" if near else ""
            raise GraphError(f"no dtype is named {value!r}{hint}")
        return cls.from_numpy(value)

    @classmethod
    def from_numpy(cls, dtype: Any) -> DType:
        """Return the DType that corresponds to a NumPy dtype, or to any argument of np.dtype.

        Raises GraphError where no DType corresponds.
        """
        try:
            numpy_dtype = np.dtype("O" if dtype is None else dtype)  # np.dtype(None) is float64
            return _by_numpy()[numpy_dtype.newbyteorder("=")]
        except (TypeError, KeyError, ValueError):
            raise GraphError(
                f"no dtype corresponds to {dtype!r}",
                fix="give a DType, one of their names or a NumPy dtype",
            ) from None

    def to_numpy(self) -> np.dtype[Any]:
        """Return the NumPy dtype that stores the values: uint64 for index, say.

        It is float32 for tensor_float32, and int64, float64 or complex128 for the weak dtypes.
        """
        return self.storage

    def __repr__(self) -> str:
        return f"DType.{self._value_}"

    def __str__(self) -> str:
        return cast(str, self._value_)

    @property
    def is_integer(self) -> Bool:
        """Whether values are integers. The answer for bool is False."""
        return self.family in ("int", "uint")

    @property
    def is_float(self) -> Bool:
        return self.family == "float"

    @property
    def is_complex(self) -> Bool:
        return self.family == "complex"

    @property
    def is_inexact(self) -> Bool:
        """Whether values are floats or complex numbers, NumPy's `inexact`."""
        return self.family in ("float", "complex")

    @property
    def part(self) -> DType:
        """The dtype of the real and imaginary parts; for a real dtype, the dtype itself."""
        return _PARTS[self] if self.family == "complex" else self

    @property
    def exponent_bits(self) -> int:
        """Bits of the exponent: 0 for integers; for a complex dtype, those of one part."""
        return self.format.exponent if self.format else 0

    @property
    def mantissa_bits(self) -> int:
        """Bits of the stored fraction: 0 for integers; for a complex dtype, those of one part."""
        return self.format.mantissa if self.format else 0

    @property
    def precision(self) -> int:
        """The largest p such that every integer of p bits is exact.

        For a float p is the width of the significand, for an integer the width of the magnitude.
        """
        return self.format.mantissa + 1 if self.format else self.bits - (self.family == "int")

    @property
    def max(self) -> int | float:
        """The greatest finite value; for a complex dtype, that of one part."""
        return self.format.max if self.format else 2**self.precision - 1

    @property
    def min(self) -> int | float:
        """The least finite value; for a complex dtype, that of one part."""
        if self.format:
            return self.format.least if self.format.specials == "scale" else -self.format.max
        return -(2**self.precision) if self.family == "int" else 0

    def exact_in(self, other: DTypeLike) -> Bool:
        """Answer whether `other` represents every value of this dtype exactly.

        The values include -0.0, the infinities and NaN.
        """
        return _witness(self, DType(other)) is None

    def witness(self, other: DTypeLike) -> complex | None:
        """Return the simplest value of this dtype that `other` does not represent, or None.

        The witness is the least non-negative integer that does not survive the conversion; else
        the lost negative integer nearest zero; else the lost finite value of least magnitude; else
        -0.0, inf or NaN. None means that every value survives.
        """
        return _witness(self, DType(other))


DTypeLike: TypeAlias = "DType | DTypeName | np.dtype[Any] | type[Any]"

_PARTS = {
    DType.complex64: DType.float32,
    DType.complex128: DType.float64,
    DType.weak_complex: DType.weak_float,
}


# -- Float formats of other distributions

T = TypeVar("T")

_TABLES: list[tuple[list[Any], Callable[[DType], Any]]] = []
_CACHES: list[Callable[[], None]] = []


def by_dtype(value: Callable[[DType], T]) -> list[T]:
    """Return the value of each dtype in a list indexed by `DType.code`, which grows with DType."""
    table = [value(dtype) for dtype in DType]
    _TABLES.append((table, value))
    return table


def until_declared(function: Callable[..., T]) -> Callable[..., T]:
    """Decorator: cache what all dtypes decide, until a dtype is declared."""
    cached = cache(function)
    _CACHES.append(cached.cache_clear)
    return cached


def float_dtype(
    name: str,
    exponent: int,
    mantissa: int,
    specials: Specials = "ieee",
    bias: int | None = None,
    short: str = "",
) -> DType:
    """Add a float format to DType and return its member; the same call again returns it too.

    The facts are those of Float. `bias` defaults to that of IEEE 754, or one more for "fnuz".
    `short` is a name for tables. Values lie in float32 arrays and are rounded on entry, as those of
    tensor_float32 do. Raises GraphError for a name that is taken, for facts that are no format, and
    for a format whose values or rounding float32 does not hold.
    """
    if not (isinstance(name, str) and name.isidentifier()) or name.startswith("_"):  # pyright: ignore
        raise GraphError("a dtype's name is an identifier without _ before it", got=repr(name))
    form = _float(exponent, mantissa, specials, bias)
    present = DType.__members__.get(name)
    if present is not None and present.emulated and present.format == form:
        return present
    taken = [x for x in (name, short) if x and (x in _names() or x in {d.short for d in DType})]
    if taken or any(hasattr(x, name) for x in (np, ml_dtypes, DType.bool)) or _is_numpy_code(name):
        raise GraphError(f"the name {(taken or [name])[0]!r} is taken", fix="take another name")
    if problem := _problem(form):
        raise GraphError(f"dtype {name!r}: {problem}", got=str(form))
    sign = specials != "scale"
    dtype = object.__new__(DType)
    dtype.__init__(name, short or name, "float", sign + exponent + mantissa, form)
    dtype._name_ = name
    for table, value in _TABLES:
        table.append(value(dtype))
    setattr(DType, name, dtype)
    DType._member_names_.append(name)
    DType._member_map_[name] = DType._value2member_map_[name] = dtype
    for clear in _CACHES:
        clear()
    return dtype


def _is_numpy_code(name: str) -> bool:
    try:
        np.dtype(name)
    except TypeError:
        return False
    return True


def _problem(form: Float) -> str:
    """Return why a format cannot be computed within float32; "" for one that can."""
    if form.specials not in _SPECIALS:
        return f"specials is one of {', '.join(_SPECIALS)}"
    if form.specials == "scale":
        fits = form.mantissa == 0 and 1 < form.exponent <= 8 and form.least >= 2.0**-127
        return "" if fits and form.max < 2.0**128 else "a scale has 2 to 8 exponent bits alone"
    if not (1 < form.exponent <= 8 and 0 < form.mantissa <= 10):
        return "a float has 2 to 8 bits of exponent and 1 to 10 of mantissa"
    if form.max >= 2.0**128 or form.least * 2.0**form.mantissa < 2.0**-126:
        return "its normal values are beyond those of float32"
    return ""


@until_declared
def _names() -> dict[str, DType]:
    shorts = {d.short: d for d in DType if not _means_another(d)}
    return shorts | {name: d for d in DType for name in (str(d), *d.aliases)}


def _means_another(dtype: DType) -> bool:
    """Answer whether NumPy reads a dtype's short name as another dtype.

    Short names count bits, and NumPy's codes such as `i8` and `u4` count bytes.
    """
    try:
        return np.dtype(dtype.short) != dtype.storage
    except TypeError:
        return False


def numpy_code(value: Any) -> Any:
    """Return the NumPy dtype that NumPy's functions read in a string; other values unchanged.

    NumPy's `"i8"` has 8 bytes, where graphir's short names count bits. A string that names another
    byte order than this machine's is returned unchanged, and no DType has such a name.
    """
    if not isinstance(value, str):
        return value
    try:
        dtype = np.dtype(value)
    except TypeError:
        return value
    return dtype if dtype in _by_numpy() and dtype.isnative else value


@until_declared
def _by_numpy() -> dict[np.dtype[Any], DType]:
    return {d.storage: d for d in DType if d == d.storage}


@cache
def _witness(a: DType, b: DType) -> complex | None:
    """Compute DType.witness from the facts of both dtypes."""
    if a is b:
        return None
    if b.format and b.format.specials == "scale":
        return 0
    if a.family == "bool":
        return None
    if a.family == "complex" and b.family not in ("bool", "complex"):
        witness = _lost_real(a, b)
        imaginary = complex(0.0, a.format.least if a.format else 1.0)
        return witness if witness is not None and witness == int(witness.real) else imaginary
    return _lost_real(a, b)


def _lost_real(a: DType, b: DType) -> int | float | None:
    """Return the witness among real values, in the order of DType.witness."""
    if (n := _least_lost_integer(a, b, a.max, b.max)) is not None:
        return n
    if a.min < 0 and (n := _least_lost_integer(a, b, -a.min, -b.min)) is not None:
        return -n
    if not a.format:
        return None
    if (x := _least_lost_fraction(a.format, b)) is not None:
        return x
    if not b.format:
        return -0.0 if a.format.specials in ("ieee", "fn", "finite") else float("nan")
    target_specials, source_specials = _SPECIALS[b.format.specials], _SPECIALS[a.format.specials]
    return next(
        (value for name, value in _SPECIAL_VALUES if name in source_specials - target_specials),
        None,
    )


_SPECIALS = {
    "ieee": {"-0", "inf", "nan"},
    "fn": {"-0", "nan"},
    "fnuz": {"nan"},
    "finite": {"-0"},
    "scale": {"nan"},
}
_SPECIAL_VALUES = (("-0", -0.0), ("inf", float("inf")), ("nan", float("nan")))


def _least_lost_integer(a: DType, b: DType, a_max: float, b_max: float) -> int | None:
    """Return the least magnitude of an integer of `a` that `b` lacks, on one side of zero.

    `a_max` and `b_max` are the greatest magnitudes of both dtypes on that side. Between 2**k and
    2**(k+1) the values of a p-bit format are 2**(k-p+1) apart, and at least 1 apart among integers.
    So each binade needs one comparison of two spacings.
    """
    top, limit = int(a_max), int(b_max)
    for k in range(top.bit_length()):
        low = 2**k
        step = 2 ** max(0, k - a.precision + 1) if a.format else 1
        target_step = 2 ** max(0, k - b.precision + 1) if b.format else 1
        candidates = [low] if low > limit else []
        if limit < min(2 * low - 1, top):
            candidates.append(low + -(-(max(limit - low, -1) + 1) // step) * step)
        if step < target_step:
            candidates.append(low + step)
        candidates = [n for n in candidates if low <= n < 2 * low and n <= top]
        if candidates:
            return min(candidates)
    return None


def _least_lost_fraction(a: Float, b: DType) -> float | None:
    """Return the least positive finite value of `a` that `b` lacks.

    Precondition: `b` has every integer of `a`.
    """
    if not b.format:
        return a.least
    for k in range(int(np.log2(a.least)), math.frexp(a.max)[1]):
        step = max(a.least, 2.0 ** (k - a.mantissa))
        target_step = max(b.format.least, 2.0 ** (k - b.format.mantissa))
        if 2.0**k < b.format.least:
            return 2.0**k
        if step < target_step and 2.0**k + step < 2.0 ** (k + 1):
            return 2.0**k + step
    return None
