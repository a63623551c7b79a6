"""What differs between NumPy's result and another: type, dtype, shape, strides, bits.

Any NaN equals any NaN; -0.0 differs from 0.0. Strides along axes of length 1 and of empty arrays
have no meaning and are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

PLAIN = (bool, int, str, bytes, type(None), slice, range, type, np.dtype)


@dataclass(frozen=True)
class Difference:
    kind: str  # "type", "dtype", "shape", "strides", "strides of a view", "bits", "value", ...
    path: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.kind} of {self.path}: NumPy {self.expected}, here {self.actual}"


def _equal_elements(expected: Any, actual: Any) -> Any:
    kind = expected.dtype.kind
    if kind == "c":
        real = _equal_elements(expected.real, actual.real)
        return real & _equal_elements(expected.imag, actual.imag)
    if kind == "f":
        unsigned = f"u{expected.dtype.itemsize}"
        ordered = [np.ascontiguousarray(one).reshape(-1) for one in (expected, actual)]
        ordered = [one.astype(one.dtype.newbyteorder("=")) for one in ordered]
        bits = ordered[0].view(unsigned) == ordered[1].view(unsigned)
        return (bits | (np.isnan(ordered[0]) & np.isnan(ordered[1]))).reshape(expected.shape)
    return expected == actual


def bits_differ(expected: Any, actual: Any, path: str = "result") -> Difference | None:
    """Compare the elements of two arrays of one dtype and shape."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.dtype.names:
        fields = (bits_differ(expected[n], actual[n], path) for n in expected.dtype.names)
        return next((field for field in fields if field), None)
    if expected.dtype.kind == "O":
        pairs = zip(expected.flat, actual.flat, strict=True)
        return next((d for one, two in pairs if (d := find_difference(one, two, path))), None)
    if expected.tobytes() == actual.tobytes():
        return None
    with np.errstate(all="ignore"):
        equal = np.asarray(_equal_elements(expected, actual))
    if equal.all():
        return None
    places = np.argwhere(~equal)
    place = tuple(int(n) for n in places[0])
    count = f"{len(places)} of {expected.size} differ, first at {place}"
    return Difference("bits", path, repr(expected[place]), f"{actual[place]!r} ({count})")


def _meaningful_strides(value: Any) -> tuple[int, ...]:
    if not value.size:
        return ()
    return tuple(stride for n, stride in zip(value.shape, value.strides, strict=True) if n > 1)


def _array_difference(expected: Any, actual: Any, path: str) -> Difference | None:
    if expected.dtype != actual.dtype or expected.dtype.str != actual.dtype.str:
        return Difference("dtype", path, str(expected.dtype), str(actual.dtype))
    if expected.shape != actual.shape:
        return Difference("shape", path, str(expected.shape), str(actual.shape))
    if difference := bits_differ(expected, actual, path):
        return difference
    if _meaningful_strides(expected) != _meaningful_strides(actual):
        kind = "strides" if expected.base is None else "strides of a view"
        return Difference(kind, path, str(expected.strides), str(actual.strides))
    return None


def _container_difference(expected: Any, actual: Any, path: str) -> Difference | None:
    if isinstance(expected, dict):
        keys = _container_difference(list(expected), list(actual), f"{path}.keys")
        if keys:
            return keys
        expected, actual = list(expected.values()), list(actual.values())
    if len(expected) != len(actual):
        return Difference("length", path, str(len(expected)), str(len(actual)))
    for place, (one, two) in enumerate(zip(expected, actual, strict=True)):
        if difference := find_difference(one, two, f"{path}[{place}]"):
            return difference
    return None


def find_difference(expected: Any, actual: Any, path: str = "result") -> Difference | None:
    """The first difference between a value of NumPy's and another, or None."""
    if type(expected) is not type(actual):
        shown = [f"{type(one).__name__} {str(one)[:40]}" for one in (expected, actual)]
        kind = f"type ({type(expected).__name__}, here {type(actual).__name__})"
        return Difference(kind, path, *shown)
    if isinstance(expected, np.ndarray):
        return _array_difference(expected, actual, path)
    if isinstance(expected, np.generic):
        if expected.dtype != actual.dtype:
            return Difference("dtype", path, str(expected.dtype), str(actual.dtype))
        return bits_differ(expected, actual, path)
    if isinstance(expected, float | complex):
        return bits_differ(np.array(expected), np.array(actual), path)
    if isinstance(expected, tuple | list | dict):
        return _container_difference(expected, actual, path)
    if isinstance(expected, set | frozenset):
        return find_difference(sorted(expected), sorted(actual), path)
    if isinstance(expected, PLAIN) and expected != actual:
        return Difference("value", path, repr(expected)[:80], repr(actual)[:80])
    return None


def is_comparable(value: Any) -> bool:
    """Answer whether `find_difference` compares all of the value."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return all(is_comparable(one) for one in value.flat)
        return value.dtype.kind not in "mM" and value.dtype.char not in "gG"
    if isinstance(value, np.generic):
        return value.dtype.kind not in "mM" and value.dtype.char not in "gG"
    if isinstance(value, dict):
        return all(is_comparable(one) for pair in value.items() for one in pair)
    if isinstance(value, tuple | list | set | frozenset):
        return all(is_comparable(one) for one in value)
    return isinstance(value, (float, complex, *PLAIN))


def array_leaves(value: Any) -> Iterator[Any]:
    """The arrays and NumPy scalars of a result, in order."""
    if isinstance(value, np.ndarray | np.generic):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from array_leaves(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from array_leaves(one)


def with_scalars_as_arrays(value: Any) -> Any:
    """The value with 0-d arrays in place of its numbers, to compare all but scalars' types."""
    if isinstance(value, np.generic | bool | int | float | complex):
        return np.asarray(value)
    if isinstance(value, dict):
        return {key: with_scalars_as_arrays(one) for key, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(with_scalars_as_arrays(one) for one in value)
    return value
