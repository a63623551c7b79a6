"""Creation functions: ops without operands are recorded; values from outside enter directly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.dtypes import DTypeLike
from graphir.ir.foreign_arrays import is_foreign_array, to_numpy_array
from graphir.ir.literals import native, range_attributes
from graphir.ops.attributes import several
from graphir.ops.dims import ShapeLike
from graphir.public import DType, GraphError, PromotionError, ShapeError, ops
from graphir.runtime.array_api.array import Array, array_of, array_of_values, record, with_name
from graphir.runtime.array_api.dtypes import DEFAULTS, astype, device_of, dtype_of, result_type
from graphir.runtime.array_api.expansions import expanded

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

FLOAT, INDEX = DEFAULTS["real floating"], DEFAULTS["integral"]
_OF_SCALARS = {
    bool: DType.bool,
    int: INDEX,
    float: FLOAT,
    complex: DEFAULTS["complex floating"],
}


def asarray(
    obj: ArrayLike,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool | None = None,
) -> Array:
    """Return an Array from an Array, nested sequences of numbers or Arrays, or a buffer.

    Values from outside are copied unless copy=False. An Array is returned itself unless copy=True
    or the dtype changes; a dtype change with copy=False raises ValueError. Raises OverflowError for
    an int that does not fit. Arrays in a sequence are stacked in the join of their dtypes.
    """
    device_of(device)
    to = None if dtype is None else dtype_of(dtype)
    if isinstance(obj, Array):
        return _of_array(obj, to, copy)
    if any(isinstance(each, Array) for each in _leaves(obj)):
        if copy is False:
            raise GraphError("copy=False: a sequence of arrays needs a copy", fix="use copy=None")
        return _stack(obj, to or result_type(*_leaves(obj)))
    return array_of_values(_own_values(obj, to, copy))


def _own_values(obj: ArrayLike, to: DType | None, copy: bool | None) -> NDArray[Any]:
    """Convert outside values to a NumPy array, which owns its memory unless copy=False."""
    plain = _plain(obj)
    try:
        value: NDArray[Any] = np.asarray(plain, None if to is None else to.storage)
    except ValueError as error:
        raise GraphError("NumPy makes no array of these values", reason=str(error)) from None
    if value.dtype == object:
        raise OverflowError("these values are no numbers of at most 64 bits")
    dtype_of(value.dtype)
    # An array of another library shares memory if two conversions share theirs.
    shares = not isinstance(obj, _OF_PYTHON) and np.may_share_memory(value, np.asarray(_plain(obj)))
    if copy is False and not shares:
        raise GraphError("copy=False: the array of these values needs a copy", fix="use copy=None")
    return native(value.copy() if shares and copy is not False else value)


def _plain(obj: ArrayLike) -> Any:
    """Return an array of another library as a NumPy array, and any other object itself."""
    return to_numpy_array(obj) if is_foreign_array(cast("type[Any]", type(obj))) else obj


_OF_PYTHON = (list, tuple, bool, int, float, complex)
"""Python types without a buffer that an array could share."""


def _of_array(x: Array, to: DType | None, copy: bool | None) -> Array:
    if to is None or to is x.dtype:
        return Array(x.symbol) if copy else x
    if copy is False:
        raise GraphError(
            f"copy=False: the conversion of {x.dtype} to {to} needs a copy", fix="use copy=None"
        )
    return astype(x, to)


def _leaves(obj: ArrayLike) -> Iterator[Any]:
    if isinstance(obj, (list, tuple)):
        for each in cast("Sequence[Any]", obj):
            yield from _leaves(each)
    else:
        yield obj


def _stack(obj: ArrayLike, to: DType) -> Array:
    if not isinstance(obj, (list, tuple)):
        return asarray(obj, dtype=to)
    rows = [_stack(each, to) for each in cast("Sequence[Any]", obj)]
    return record(ops.stack, *rows, axis=0) if rows else asarray([], dtype=to)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """Return an Array from another library's DLPack export; copies unless copy=False."""
    device_of(device)
    if isinstance(x, Array):
        return _of_array(x, None, copy)
    value = np.from_dlpack(x)
    return array_of_values(value if copy is False else value.copy())


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Return the vector start, start + step, ... up to but excluding stop."""
    device_of(device)
    floating = any(isinstance(each, float) for each in (start, stop, step))
    to = dtype_of(dtype, FLOAT if floating else INDEX)
    if to.is_float:  # round ints beyond the float's precision, like the values between
        start, step = float(start), float(step)
    return record(ops.range, **range_attributes(start, stop, step, to))


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    """Return `num` evenly spaced numbers from start to stop; endpoint=False excludes stop."""
    device_of(device)
    complexes = isinstance(start, complex) or isinstance(stop, complex)
    to = dtype_of(dtype, DEFAULTS["complex floating" if complexes else "real floating"])
    return array_of_values(np.linspace(start, stop, num, endpoint=endpoint, dtype=to.storage))


def full(
    shape: ShapeLike, fill_value: Any, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Return an array of one value; without `dtype`, the value's type gives the dtype."""
    device_of(device)
    if isinstance(fill_value, Array):
        value = fill_value if dtype is None else astype(fill_value, dtype)
        return record(ops.broadcast_to, value, shape=several(shape))
    kind = next(
        (scalar_type for scalar_type in _OF_SCALARS if isinstance(fill_value, scalar_type)), None
    )
    if kind is None:
        raise PromotionError("a fill value must be a Python scalar", got=repr(fill_value))
    to = dtype_of(dtype, _OF_SCALARS[kind])
    return record(ops.full, dtype=to, value=_filling(fill_value, to), shape=several(shape))


def _filling(value: complex, to: DType) -> Any:
    """Convert a Python scalar to a dtype; TypeError if a lower kind cannot represent it."""
    higher = isinstance(value, complex) and not to.is_complex
    higher = higher or (isinstance(value, float) and to.is_integer)
    with np.errstate(all="ignore"):  # a value beyond the float range becomes inf
        if not higher:
            return np.array(value, to.storage).item()
        number = np.array(value.real).astype(to.storage).item()
    if number != value:
        raise PromotionError(f"fill value {value!r} is not representable in {to}")
    return number


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Return a matrix with ones on the diagonal `k` and zeros elsewhere."""
    device_of(device)
    columns = n_rows if n_cols is None else n_cols
    return record(ops.eye, dtype=dtype_of(dtype, FLOAT), rows=n_rows, columns=columns, offset=k)


def _of_one_value(name: str, value: float) -> Callable[..., Array]:
    def function(
        shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Array:
        return full(shape, value, dtype=dtype_of(dtype, FLOAT), device=device)

    return with_name(function, name, f"{value:g} everywhere, float64 where no dtype is asked for.")


def _like(name: str, value: float) -> Callable[..., Array]:
    def function(
        x: Array, /, *, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Array:
        return full_like(x, value, dtype=dtype, device=device)

    doc = f"{value:g} everywhere, in the shape of an array, and its dtype if no other."
    return with_name(function, name, doc)


def full_like(
    x: Array, /, fill_value: Any, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Array:
    """Return an array of one value in the shape of x; without `dtype`, in the dtype of x."""
    return full(array_of(x).shape, fill_value, dtype=dtype_of(dtype, x.dtype), device=device)


zeros, ones, empty = (_of_one_value(*each) for each in (("zeros", 0), ("ones", 1), ("empty", 0)))
zeros_like, ones_like = _like("zeros_like", 0), _like("ones_like", 1)
empty_like = _like("empty_like", 0)


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Return the coordinate arrays of vectors, in matrix order ("ij") or Cartesian order ("xy").

    "xy" exchanges the first two axes of "ij".
    """
    if indexing not in ("xy", "ij"):
        raise GraphError('indexing must be "xy" or "ij"', got=repr(indexing))
    return expanded(np.meshgrid, *map(array_of, arrays), indexing=indexing) if arrays else ()


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with the elements on and below the diagonal `k`, and zeros above."""
    return expanded(np.tril, _matrices("tril", x), k)


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Return matrices with the elements on and above the diagonal `k`, and zeros below."""
    return expanded(np.triu, _matrices("triu", x), k)


def _matrices(name: str, x: Array) -> Array:
    if array_of(x).ndim < 2:
        raise ShapeError(f"{name} takes matrices", got=f"shape {x.shape}")
    return x
