"""The standard's data types, functions on data types, and inspection of the namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from graphir.dtypes import DTypeLike
from graphir.promotion.scalars import WEAK
from graphir.public import DType, GraphError, GraphirError, PromotionError, ops
from graphir.runtime.array_api.array import CPU, Array, array_of, device_of, record
from graphir.runtime.array_api.lazy import ARRAYS, TAPE

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (DType.bool,),
    "signed integer": (DType.int8, DType.int16, DType.int32, DType.int64),
    "unsigned integer": (DType.uint8, DType.uint16, DType.uint32, DType.uint64),
    "real floating": (DType.float32, DType.float64),
    "complex floating": (DType.complex64, DType.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]
ALL = KINDS["bool"] + KINDS["numeric"]
DEFAULTS = {
    "real floating": DType.float64,
    "complex floating": DType.complex128,
    "integral": DType.int64,
    "indexing": DType.int64,
}


def dtype_of(dtype: DTypeLike | None, default: DType | None = None) -> DType:
    """Return the dtype that an argument names; None means `default`.

    Raises TypeError for a dtype outside the standard.
    """
    if dtype is None and default is not None:
        return default
    try:
        dtype_ = DType(dtype)
    except (GraphirError, TypeError, ValueError):  # an array is compared with the names of dtypes
        raise PromotionError(f"{dtype!r} is not a dtype", fix=f"use one of {_names()}") from None
    if dtype_ not in ALL:
        raise PromotionError(
            f"{dtype_} is not a dtype of the standard", fix=f"use one of {_names()}"
        )
    return dtype_


def _names() -> str:
    return ", ".join(map(str, ALL))


def astype(x: Array, dtype: DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Array:
    """Convert an array to a dtype; float to integer truncates, complex to real raises TypeError.

    With copy=False, an array that has the dtype is returned itself.
    """
    to = dtype_of(dtype)
    device_of(device)
    if to is array_of(x).dtype:
        return Array(x.symbol) if copy else x
    if x.dtype.is_complex and not to.is_complex:
        raise PromotionError(
            f"astype of {x.dtype} to {to} would drop the imaginary part",
            fix="take real(x) or abs(x), or x != 0, first",
        )
    return record(ops.cast, x, to=to)


def can_cast(from_: Array | DTypeLike, to: DTypeLike, /) -> bool:
    """Whether the join of `from_`, a dtype or an array, with `to` is `to`."""
    source = from_.dtype if isinstance(from_, Array) else dtype_of(from_)
    return TAPE.rules.answer(source, dtype_of(to)) is to


def isdtype(dtype: DTypeLike, kind: DTypeLike | str | tuple[DTypeLike | str, ...]) -> bool:
    """Whether a dtype belongs to a kind: a kind's name, a dtype, or a tuple of these."""
    if isinstance(kind, tuple):
        several = cast("tuple[Any, ...]", kind)
        if any(isinstance(each, tuple) for each in several):
            raise PromotionError("a tuple of kinds holds names and dtypes", got=repr(several))
        return any(isdtype(dtype, each) for each in several)
    if not isinstance(kind, str):
        return dtype_of(dtype) is dtype_of(kind)
    return dtype_of(dtype) in kind_of(kind)


def kind_of(kind: str) -> tuple[DType, ...]:
    """Return the dtypes of a kind; raise ValueError for a name outside the standard."""
    if kind not in KINDS:
        raise GraphError(f"unknown kind of dtypes {kind!r}", fix=f"use {', '.join(KINDS)}")
    return KINDS[kind]


def result_type(*arrays_and_dtypes: Array | DTypeLike | complex) -> DType:
    """Return the join of arrays, dtypes and Python scalars; raise TypeError if there is none.

    Raises ValueError unless one of them is an array or a dtype.
    """
    if all(type(operand) in WEAK for operand in arrays_and_dtypes):
        raise GraphError("an array or a dtype is needed beside Python scalars", op="result_type")
    try:
        return TAPE.rules.promote(*map(_promotion_operand, arrays_and_dtypes))
    except PromotionError as error:
        raise error.having(vocabulary=ARRAYS) from None


def _promotion_operand(operand: Any) -> Any:
    if isinstance(operand, Array):
        return operand.type
    return operand if type(operand) in WEAK else dtype_of(operand)


@dataclass(frozen=True, eq=False, slots=True)
class finfo_object:  # noqa: N801 -- the standard's name
    """The result of `finfo`: the limits of a float dtype, or of a complex dtype's parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True, eq=False, slots=True)
class iinfo_object:  # noqa: N801 -- the standard's name
    """The result of `iinfo`: the limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Array | DTypeLike, /) -> finfo_object:
    """Return the limits of a floating-point or complex dtype, or of an array's dtype."""
    dtype = _dtype_among(type, "real floating", "complex floating").part
    info = np.finfo(dtype.storage)
    eps, most, least, normal = map(float, (info.eps, info.max, info.min, info.smallest_normal))
    return finfo_object(info.bits, eps, most, least, normal, dtype)


def iinfo(type: Array | DTypeLike, /) -> iinfo_object:
    """Return the limits of an integer dtype, or of an array's dtype."""
    dtype = _dtype_among(type, "integral")
    return iinfo_object(dtype.bits, int(dtype.max), int(dtype.min), dtype)


def require(what: str, x: Array, *kinds: str) -> None:
    """Raise TypeError unless an array's dtype belongs to one of the kinds."""
    if not isdtype(array_of(x).dtype, kinds):
        raise PromotionError(
            f"{what} of {x.dtype}: it takes {' and '.join(kinds)}", fix="astype first"
        )


def _dtype_among(operand: Array | DTypeLike, *kinds: str) -> DType:
    dtype = operand.dtype if isinstance(operand, Array) else dtype_of(operand)
    if not isdtype(dtype, kinds):
        raise PromotionError(f"the dtype is of the kind {' or '.join(kinds)}", got=str(dtype))
    return dtype


# -- inspection: capabilities, devices and dtypes


class Info:
    """The capabilities, devices and dtypes of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities: boolean masks, value-dependent shapes, NumPy's 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the default device, the CPU."""
        return CPU

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """Return the default dtypes of Python numbers and of indices."""
        device_of(device)
        return dict(DEFAULTS)

    def devices(self) -> tuple[str, ...]:
        """Return the devices: the CPU alone."""
        return (CPU,)

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Return the dtypes of a kind, or of a tuple of kinds, by name; None means all dtypes."""
        device_of(device)
        if kind is None:
            return {str(dtype): dtype for dtype in ALL}
        kinds = kind if isinstance(kind, tuple) else (kind,)
        return {str(dtype): dtype for name in kinds for dtype in kind_of(name)}


def __array_namespace_info__() -> Info:  # noqa: N807 -- the standard's name
    """Return the inspection object of the namespace."""
    return Info()
