"""Python scalars, lists and arrays, converted to constants of a dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.ir.foreign_arrays import is_foreign_array, to_numpy_array
from graphir.ops.attributes import plain
from graphir.ops.dims import Dim
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import fits, int_range, misfit, number_text, scalar

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol


class DeferredNumber:
    """A Python number that becomes an input of the graph: the base class of traced numbers."""

    __slots__ = ()

    def symbol(self) -> Symbol:
        """Return the input, in the dtype that the rules give the number without partners."""
        raise NotImplementedError

    def filled(self, dtype: DType) -> Symbol:
        """Return the input converted to a dtype, as a constant of the number would be converted."""
        raise NotImplementedError


def is_literal(value: object) -> TypeGuard[bool | int | float | complex]:
    """Answer whether a value is a Python scalar.

    np.float64 is a subclass of float, and yet a NumPy scalar: the answer for it is False.
    """
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def literal_array(
    value: Any, dtype: DType, rules: PromotionRules | None = None, tf32: str = "even"
) -> tuple[DType, NDArray[Any]]:
    """Return a dtype, and a scalar as a 0-d array in that dtype's storage.

    `rules` decide whether the scalar fits; without them it must be exact, or finite in a float.
    Raises GraphError unless the value is a scalar that fits.
    """
    value = plain(value)
    if not is_literal(value):
        raise GraphError("a Python or NumPy scalar is needed", got=repr(value))
    if not (rules.fits if rules else fits)(value, dtype):
        raise misfit(value, dtype)
    short = -(2**63) <= value < 2**64 if isinstance(value, int) else True
    if not short and not (dtype.narrow and dtype.is_float):
        raise GraphError(
            f"{number_text(value)} does not fit the 64 bits of an int", fix="write it as a float"
        )
    return dtype, scalar(value, dtype, tf32)


def array_of(value: Any, dtype: DType | None, tf32: str = "even") -> tuple[DType, NDArray[Any]]:
    """Return the dtype and the array of an array-like.

    Without a dtype the value needs a dtype of its own. With a dtype each value must fit as a scalar
    must: ints exactly, finite floats staying finite. Raises GraphError, which names the first value
    that does not fit, and GraphError for masked arrays and for lists without a dtype.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise GraphError("a masked array has elements without a value", fix="use x.filled(...)")
    foreign = is_foreign_array(cast("type[Any]", type(value)))
    if foreign:
        value = to_numpy_array(value)
    try:
        array: NDArray[Any] = np.asarray(value)
    except ValueError as error:
        raise GraphError("NumPy makes no array of these values", reason=str(error)) from None
    if dtype is None:
        if not foreign and not hasattr(value, "dtype"):
            raise GraphError("a list has no dtype", fix="write g.constant[DType....](...)")
        return DType.from_numpy(array.dtype), native(array)
    if array.dtype == dtype.storage and not dtype.emulated:
        return dtype, array
    if array.dtype == object:
        flat = [literal_array(element, dtype, None, tf32)[1] for element in array.ravel().tolist()]
        return dtype, np.stack(flat).reshape(array.shape) if flat else array.astype(dtype.storage)
    source, array = DType.from_numpy(array.dtype), native(array)
    misfits = ~_fitting(array, source, dtype)
    if misfits.any():
        first = array[misfits].ravel()[0]
        literal_array(first, dtype)
        raise GraphError(
            f"{first!r} of {source} does not fit {dtype}", fix="use g.constant(x).cast(...)"
        )
    return dtype, convert(array, source, dtype, tf32)


def native(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _fitting(array: NDArray[Any], source: DType, dtype: DType) -> NDArray[np.bool_]:
    """Return, for each value of an array, whether it fits a dtype by the rule of `fits`.

    The result is a bool array of the same shape.
    """
    if source.exact_in(dtype):
        return np.ones(array.shape, np.bool_)
    if source.is_integer:
        low, high = int_range(dtype)
        wide = array.astype(np.int64 if source.family == "int" else np.uint64)
        return (wide >= max(low, int(source.min))) & (wide <= min(high, int(source.max)))
    if source.is_complex > dtype.is_complex or dtype.format is None:
        return np.zeros(array.shape, np.bool_)
    if source.is_complex:
        parts: Any = array
        return _fitting(parts.real, source.part, dtype) & _fitting(parts.imag, source.part, dtype)
    wide = convert(array, source, DType.float64)
    back = convert(convert(wide, DType.float64, dtype.part), dtype.part, DType.float64)
    return np.where(
        np.isfinite(wide), np.isfinite(back), (wide == back) | np.isnan(wide) & np.isnan(back)
    )


def range_attributes(start: Any, stop: Any, step: Any, dtype: DType) -> dict[str, Any]:
    """Return the attributes of the op range from the arguments of NumPy's arange.

    `stop` may be a symbolic dim. Raises ShapeError for a step of 0 and for bounds that are not
    finite real numbers, GraphError for a value that does not fit the dtype.
    """
    if stop is None:
        start, stop = 0, start
    start, step = _finite(start), _finite(step)
    if not step:
        raise ShapeError("the step of a range is not 0", got="0", op="range")
    if isinstance(stop, (str, Dim)):
        if type(start) is not int or type(step) is not int or step < 1:
            raise ShapeError(
                "a range up to a symbolic dim has an int start and a positive int step",
                got=f"start={start!r}, step={step!r}",
                op="range",
            )
        size = (Dim.of(stop) - start + (step - 1)) // step
    else:
        size = _length(start, _finite(stop), step)
        for end in (start, start + (size - 1) * step) if size else ():
            literal_array(end, dtype)
    return {"dtype": dtype, "start": start, "step": step, "size": size}


def _finite(value: Any) -> Any:
    """Return a range's bound or step as a finite real number; ShapeError for any other value."""
    number = plain(value)
    if not isinstance(number, (int, float)) or not math.isfinite(number):
        raise ShapeError(
            "start, stop and step of a range must be finite real numbers", got=repr(value)
        )
    return number


def _length(start: int | float, stop: int | float, step: int | float) -> int:
    # The length for ints is exact, as in Python's range; for floats it is numpy.arange's.
    exact = all(isinstance(bound, int) for bound in (start, stop, step))
    steps = -((start - stop) // step) if exact else math.ceil((stop - start) / step)
    return max(0, int(steps))
