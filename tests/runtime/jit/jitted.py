"""Arrays of other libraries in small, and jitted functions that are compared or counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from graphir.runtime import jit

X = np.arange(4, dtype=np.float32)


def agree(f: Any, *args: Any) -> None:
    """The jitted function gives what its function gives, dtype and shape too."""
    expected = np.asarray(f.__wrapped__(*args))
    found = f(*args)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def counted(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """The jitted function, and a list that grows when it is traced."""
    traces: list[int] = []

    @wraps(function)
    def f(*args: Any) -> Any:
        traces.append(1)
        return function(*args)

    return jit(f), traces


class Interface:
    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


class Converts:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array, dtype)


class Lends:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **settings: Any) -> Any:
        return self.array.__dlpack__(**settings)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()
