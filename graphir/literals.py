"""Values that come from Python: scalars, lists and arrays made constants of a dtype."""

from __future__ import annotations

from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.dims import Dim, Size
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.promotion.rules import WEAK, PromotionRules, fits


def is_literal(value: object) -> TypeGuard[bool | int | float | complex]:
    """Whether a value is a Python scalar; np.float64, a subclass of float, is a NumPy scalar."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def scalar(value: Any, dtype: DType, tf32: str = "even") -> NDArray[Any]:
    """A Python scalar as a 0-d array in a dtype's storage, rounded once; it must fit already."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 2**63 - 1:
        return convert(np.asarray(value, np.uint64), DType.uint64, dtype, tf32)
    source = WEAK[type(value)]
    return convert(np.asarray(value, source.storage), source, dtype, tf32)


def literal_array(
    value: Any, dtype: DType, rules: PromotionRules | None = None, tf32: str = "even"
) -> tuple[DType, NDArray[Any]]:
    """A dtype and the 0-d array of a scalar in it; GraphError unless the scalar fits."""
    value = cast("np.generic[Any]", value).item() if isinstance(value, np.generic) else value
    if not is_literal(value):
        raise GraphError(f"a Python or NumPy scalar is needed here, not {value!r}")
    known = rules.fits if rules else fits
    if not known(value, dtype):
        raise GraphError(
            f"{value!r} does not fit {dtype}, whose values lie in [{dtype.min}, {dtype.max}]"
            + (f" and are exact for ints up to 2**{dtype.precision}" if dtype.format else "")
            + "; choose a wider dtype, or make it in one and .cast(...)"
        )
    return dtype, scalar(value, dtype, tf32)


def array_of(value: Any, dtype: DType | None, tf32: str = "even") -> tuple[DType, NDArray[Any]]:
    """The dtype and the array of an array-like; GraphError names the first value that does not fit.

    With a dtype, each value must fit it as a scalar must: ints exactly, floats staying finite.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise GraphError("a masked array has elements without a value; .filled(...) it first")
    try:
        array: NDArray[Any] = np.asarray(value)
    except ValueError as error:
        raise GraphError(f"these values are no array: {error}") from None
    if dtype is None:
        if not hasattr(value, "dtype"):
            raise GraphError("a list has no dtype; write g.constant[DType....](...)")
        return DType.from_numpy(array.dtype), array
    if array.dtype == dtype.storage and dtype is not DType.tensor_float32:
        return dtype, array
    if array.dtype == object:
        flat = [literal_array(one, dtype, None, tf32)[1] for one in array.ravel().tolist()]
        return dtype, np.stack(flat).reshape(array.shape) if flat else array.astype(dtype.storage)
    source = DType.from_numpy(array.dtype)
    misfits = ~_fitting(array, source, dtype)
    if misfits.any():
        first = array[misfits].ravel()[0]
        literal_array(first, dtype)
        raise GraphError(f"{first!r} of {source} does not fit {dtype}; .cast(...) it instead")
    return dtype, convert(array, source, dtype, tf32)


def _fitting(array: NDArray[Any], source: DType, dtype: DType) -> NDArray[np.bool_]:
    """Where the values of an array fit a dtype, as `fits` says of scalars."""
    if source.exact_in(dtype):
        return np.ones(array.shape, np.bool_)
    if source.is_float and dtype.format and dtype.is_complex >= source.is_complex:
        wide = convert(array, source, DType.float64)
        with np.errstate(all="ignore"):
            narrow = convert(convert(wide, DType.float64, dtype.part), dtype.part, DType.float64)
        return np.isfinite(narrow) | ~np.isfinite(wide)
    flat = [fits(one, dtype) for one in array.ravel().tolist()]
    return np.array(flat, np.bool_).reshape(array.shape)


def range_attributes(start: Any, stop: Any, step: Any, dtype: DType) -> dict[str, Any]:
    """The attributes of a range as NumPy's arange takes its arguments; `stop` may be a dim."""
    if stop is None:
        start, stop = 0, start
    if not step:
        raise ShapeError("the step of a range cannot be 0")
    size: Size
    if isinstance(stop, (str, Dim)):
        if type(start) is not int or type(step) is not int or step < 1:
            raise ShapeError(
                "a range up to a symbolic dim has an int start and a positive int step"
            )
        size = (Dim.of(stop) - start + (step - 1)) // step
    else:
        size = max(0, int(np.ceil((stop - start) / step)))
        if size:
            for end in (start, start + (size - 1) * step):
                literal_array(end, dtype)
    return {"dtype": dtype, "start": start, "step": step, "size": size}
