"""x[key] and x[key] = value: recorded if the result's shape is known, else computed at once."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.ir.operators.indexing import index
from graphir.promotion.scalars import WEAK
from graphir.public import DType, GraphError, GraphirError, PromotionError, ops
from graphir.runtime.array_api.array import Array, Key, array_of_values, eager, record, values
from graphir.runtime.array_api.expansions import recorded
from graphir.runtime.array_api.lazy import TAPE
from graphir.runtime.array_api.views import write


class IndexingError(GraphError, IndexError):
    """The error for a key that is invalid for an array's shape."""


def item(x: Array, key: Key) -> Array:
    """Return `x[key]`, for ints, slices, ..., None, a mask, or arrays of integers.

    Raises IndexError for other keys.
    """
    keys = _check_key(key)
    arrays = [each for each in keys if isinstance(each, Array)]
    try:
        if not arrays:
            return _view_at(x, keys)
        if len(arrays) > 1 or arrays[0].dtype is DType.bool or not _is_plain(keys):
            return eager(_item, x, *keys)
        return _gather_at(x, keys)
    except IndexError as error:
        raise IndexingError(f"{_key_text(x, key)}: {error}") from None
    except GraphirError as error:
        raise IndexingError.like(error) from None


def assign(x: Array, key: Key, value: Array | complex) -> None:
    """Execute `x[key] = value` at once.

    Raises TypeError for a value that would change the dtype of x, IndexError for an invalid key,
    ValueError for shapes that do not broadcast, and OverflowError for an int outside the dtype.
    """
    keys = tuple([values(each) if isinstance(each, Array) else each for each in _check_key(key)])
    try:
        with np.errstate(all="ignore"):  # a value beyond the float range becomes inf
            write(x, keys, _assignable(x, value))
    except GraphirError:  # from a pending op of x or value; the error has the op's line
        raise
    except IndexError as error:
        raise IndexingError(f"{_key_text(x, key)}: {error}") from None
    except ValueError as error:
        raise GraphError(f"{_key_text(x, key)}: {error}") from None


def _assignable(x: Array, value: Any) -> Any:
    """Return the value for NumPy's assignment; TypeError unless it promotes to x's dtype."""
    kinds = [kind for kind in WEAK if isinstance(value, kind)]
    if not kinds and not isinstance(value, Array):
        raise TypeError(
            f"an array or a Python scalar is assigned, not {type(value).__name__}; "
            "asarray(...) makes an array"
        )
    dtype = WEAK[kinds[0]] if kinds else value.dtype
    if TAPE.rules.answer(x.dtype, dtype) is not x.dtype:
        what = repr(value) if kinds else str(dtype)
        way = f"{x.dtype.family.lstrip('u')}(y)" if kinds else "astype(y, x.dtype)"
        raise PromotionError(
            f"an array of {x.dtype} takes no {what}", op="x[...] = y", fix=f"{way} first"
        )
    return value if kinds else values(value)


def _check_key(key: Key) -> tuple[Any, ...]:
    keys = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
    return tuple(map(_index, keys))


def _index(entry: Any) -> Any:
    """Return one entry of a key, with integers converted to int; IndexError if invalid."""
    if entry is None or entry is ...:
        return entry
    if isinstance(entry, slice):
        bounds = cast(Any, entry)
        return slice(*map(_bound, (bounds.start, bounds.stop, bounds.step)))
    if isinstance(entry, Array) and (entry.dtype is DType.bool or entry.dtype.is_integer):
        return entry
    return _int(entry)


def _int(entry: Any) -> int:
    try:
        if not isinstance(entry, bool):
            return operator.index(entry)
    except TypeError:
        pass
    raise IndexingError(
        "an index is an int, a slice, ..., None, a mask or an array of integers", got=repr(entry)
    )


def _bound(bound: Any) -> int | None:
    return None if bound is None else _int(bound)


def _view_at(x: Array, keys: tuple[Any, ...]) -> Array:
    """Return x[keys] for ints, slices, ... and None: a view, or a copy for a single element.

    An element of a computed array is taken at once: a recorded op would be another one for each
    index, with its own inference, and a loop over the elements would make thousands of them.
    """
    value = x.symbol.value
    if value is not None and len(keys) == x.ndim and all(type(key) is int for key in keys):
        with suppress(IndexError):  # the op refuses the index in the words of the others
            return array_of_values(np.array(value[keys]))
    part = _part(x, keys)
    return Array(part.symbol) if not part.shape and ... not in keys else part


def _part(x: Array, keys: tuple[Any, ...]) -> Array:
    """Return the view x[keys] for ints, slices, ... and None."""
    return recorded((x.type, *map(_hashable, keys)), index, (x,), (x, keys), {})


def _hashable(key: Any) -> Any:
    return (key.start, key.stop, key.step) if isinstance(key, slice) else key  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _is_plain(keys: tuple[Any, ...]) -> bool:
    """Whether the result has the axes of the one index array at the array's own position."""
    spread = [isinstance(entry, slice) or entry is None or entry is ... for entry in keys]
    return not any(spread) or sum(spread) == len(keys) - 1


def _gather_at(x: Array, keys: tuple[Any, ...]) -> Array:
    """Return x[keys] for one index array: apply the other keys, then gather along its axis."""
    place = next(i for i, entry in enumerate(keys) if isinstance(entry, Array))
    rest = _part(x, (*keys[:place], slice(None), *keys[place + 1 :]))
    after = sum(isinstance(entry, slice) or entry is None for entry in keys[place + 1 :])
    before = sum(isinstance(entry, slice) or entry is None for entry in keys[:place])
    axis = rest.ndim - 1 - after if ... in keys[:place] else before
    return record(ops.gather, rest, keys[place], axis=axis)


def _item(x: NDArray[Any], *keys: Any) -> Any:
    return np.asarray(x[keys])


def _key_text(x: Array, key: Key) -> str:
    key_text = f"array of {key.shape}" if isinstance(key, Array) else repr(key)
    return f"x[{key_text}] of shape {x.shape}"
