"""Arrays of other libraries, converted through the protocols that np.asarray reads."""

from __future__ import annotations

import array
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.errors import GraphError

_READ_BY_ASARRAY = "__array__", "__array_interface__", "__array_struct__"


@cache
def is_foreign_array(kind: Any) -> bool:
    """Answer whether instances of a class are arrays of another library, such as torch or pandas.

    A class counts if it implements a protocol of NumPy's or DLPack.
    """
    if issubclass(kind, (np.ndarray, np.generic, type)) or kind.__module__.startswith("graphir."):
        return False
    if kind in (memoryview, array.array):
        return True
    return any(hasattr(kind, name) for name in (*_READ_BY_ASARRAY, "__dlpack__"))


def to_numpy_array(value: object) -> NDArray[Any]:
    """Convert a foreign array to a NumPy array.

    np.asarray converts it, or np.from_dlpack where the array implements DLPack alone. Raises
    GraphError if the conversion fails or yields an array of Python objects.
    """
    kind = type(value)
    name = f"{kind.__module__}.{kind.__name__}"
    dlpack = hasattr(kind, "__dlpack__") and not any(
        hasattr(kind, method) for method in _READ_BY_ASARRAY
    )
    try:
        result: NDArray[Any] = np.from_dlpack(cast("Any", value)) if dlpack else np.asarray(value)
    except Exception as error:  # the other library may raise anything
        raise GraphError(
            f"np.asarray of a {name} fails: {error}", fix="convert it to a NumPy array first"
        ) from error
    if result.dtype == object:
        raise GraphError(
            f"np.asarray of a {name} is an array of Python objects",
            fix="give it a numeric dtype first",
        )
    return result
