"""The attributes of a symbol as a frozen, interned record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from threading import RLock
from typing import Any, NoReturn, cast
from weakref import WeakValueDictionary

import numpy as np

from graphir.dtypes import DType, by_dtype

_DIGESTED = 4096
"""The size in bytes above which a key holds an array's digest or the array, not its bytes."""


def content_of(attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a key that two sets of attributes share only if they are equal bit for bit."""
    return tuple((name, _content(value)) for name, value in attrs.items())


def array_content(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Return a key that two arrays share only if they are equal bit for bit, of bounded size."""
    data = array.tobytes() if array.nbytes <= _DIGESTED else _digest(array)
    return array.dtype, array.shape, data


def _digest(array: np.ndarray[Any, Any]) -> bytes:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.blake2b(data.data).digest()


class _LargeArray:
    """A key that reads a large array only beside an array of equal dtype, shape and beginning."""

    __slots__ = ("_digest", "_start", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        start = array.flat[: _DIGESTED // array.itemsize].tobytes()
        self._start = array.dtype, array.shape, start
        self._digest = b""

    @property
    def digest(self) -> bytes:
        """Return the digest of the array's bytes; it is cached."""
        self._digest = self._digest or _digest(self.array)
        return self._digest

    def __hash__(self) -> int:
        return hash(self._start)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _LargeArray) or self._start != other._start:
            return False
        return self.array is other.array or self.digest == other.digest


def _content(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return array_content(array) if array.nbytes <= _DIGESTED else _LargeArray(array)
    if isinstance(value, (float, complex)):
        return type(value), np.asarray(value).tobytes()
    if isinstance(value, tuple):
        return tuple(_content(item) for item in cast("tuple[Any, ...]", value))
    return type(value), value.code if isinstance(value, DType) else value


class AttributeRecord(dict[str, Any]):
    """The attributes of a symbol: an immutable dict, hashed by identity.

    Records are interned: `AttributeRecord.of` returns the same record for attributes that are equal
    bit for bit, so comparing records is comparing identities. A record with an array, such as a
    constant's, is not interned, because interning would read the whole array. Compare the `content`
    of such records.
    """

    __slots__ = ("__weakref__", "_content")
    _content: tuple[Any, ...]

    @staticmethod
    def of(attrs: Mapping[str, Any]) -> AttributeRecord:
        """Return the record of a mapping of attributes."""
        if type(attrs) is AttributeRecord:
            return attrs
        new = AttributeRecord(attrs)
        for value in attrs.values():
            if isinstance(value, np.ndarray):
                return new
        with _LOCK:  # setdefault of a weak dictionary is not atomic
            return _INTERNED.setdefault(new.content, new)

    @property
    def content(self) -> tuple[Any, ...]:
        """Return a key that two records share only if they are equal bit for bit; it is cached.

        0.0 is not -0.0 and True is not 1. An array counts by dtype, shape and bytes.
        """
        try:
            return self._content
        except AttributeError:
            self._content = content_of(self)
            return self._content

    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType] -- dicts have none

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, AttributeRecord) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeRecord.of, (dict(self),)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("attributes of a symbol never change; {**symbol.attrs, ...} copies them")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = _refuse
    setdefault = update = _refuse  # pyright: ignore[reportAssignmentType] -- overloaded


_INTERNED: WeakValueDictionary[Any, AttributeRecord] = WeakValueDictionary()
_LOCK = RLock()

NO_ATTRIBUTES = AttributeRecord.of({})
TO_DTYPE = by_dtype(lambda dtype: AttributeRecord.of({"to": dtype}))
"""The attributes of a cast to each dtype, indexed by `DType.code`."""
