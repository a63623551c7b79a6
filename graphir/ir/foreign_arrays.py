"""Arrays of other libraries, converted by the protocols that np.asarray reads, and by DLPack.

The values are those of the other library, or the conversion is refused: PyTorch's dtypes that NumPy
lacks keep their bits, and a pandas object of missing values or of several dtypes is refused, since
np.asarray would convert its values.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType
from graphir.errors import GraphError

_READ_BY_ASARRAY = "__array__", "__array_interface__", "__array_struct__"


@cache
def is_foreign_array(kind: Any) -> bool:
    """Answer whether instances of a class are arrays of another library, such as torch or pandas.

    A class counts if it implements a protocol of NumPy's or DLPack.
    """
    is_symbolic = kind.__module__.startswith(("graphir.ir.", "graphir.numpy_api."))
    if is_symbolic or issubclass(kind, (np.ndarray, np.generic, type)):
        return False
    if kind in (memoryview, array.array):
        return True
    return any(hasattr(kind, name) for name in (*_READ_BY_ASARRAY, "__dlpack__"))


def to_numpy_array(value: object) -> NDArray[Any]:
    """Convert a foreign array to a NumPy array, which shares its memory where the library can.

    Raises GraphError for arrays that their library does not give to NumPy, such as those of other
    devices, arrays whose values np.asarray would convert, and arrays of Python objects.
    """
    kind = type(value)
    name = f"{kind.__module__}.{kind.__name__}"
    try:
        result = _reader_of(kind)(value, name)
    except GraphError:
        raise
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


@cache
def _reader_of(kind: type[Any]) -> Callable[[Any, str], NDArray[Any]]:
    """Return the function that reads arrays of a class, by the library of a base class."""
    libraries = {base.__module__.partition(".")[0] for base in kind.__mro__}
    for library, reader in _READERS.items():
        if library in libraries:
            return reader
    return _of_protocols


def _of_protocols(value: Any, name: str) -> NDArray[Any]:
    """Return the values by np.asarray, or by np.from_dlpack where the array has DLPack alone.

    Libraries refuse arrays of other devices, or copy them.
    """
    kind = cast("type[Any]", type(value))
    reads = any(hasattr(kind, method) for method in _READ_BY_ASARRAY)
    return np.asarray(value) if reads or not hasattr(kind, "__dlpack__") else np.from_dlpack(value)


def _of_torch(tensor: Any, name: str) -> NDArray[Any]:
    """Return the values of a PyTorch tensor; bfloat16 and float8 as in ml_dtypes.

    PyTorch itself refuses tensors of other devices and layouts, and quantized ones.
    """
    if tensor.requires_grad:
        raise GraphError(f"a {name} requires grad, which would end here", fix="pass x.detach()")
    plain = tensor.resolve_conj().resolve_neg()
    dtype = str(tensor.dtype).removeprefix("torch.")
    if not dtype.startswith(("bfloat", "float8")):
        return plain.numpy()
    words = "int16" if tensor.element_size() == 2 else "uint8"
    torch_dtype = getattr(__import__("torch"), words)
    return plain.view(torch_dtype).numpy().view(DType(dtype).storage)


def _of_pandas(values: Any, name: str) -> NDArray[Any]:
    """Return the values of a pandas object of one numeric dtype, without missing values."""
    dtypes = dict.fromkeys(values.dtypes if values.ndim == 2 else [values.dtype])
    if len(dtypes) > 1:
        raise GraphError(
            f"a {name} has columns of {', '.join(map(str, dtypes))}, which NumPy would convert",
            fix=("pass its columns", "give it one dtype, for example x.astype(np.float64)"),
        )
    dtype = next(iter(dtypes), np.dtype(np.float64))
    plain = isinstance(dtype, np.dtype)
    storage = cast("Any", dtype if plain else getattr(dtype, "numpy_dtype", None))
    if storage is not None and storage.kind == "O":
        return np.asarray(values)
    if storage is None or storage.kind not in "biufc":
        fix = "give it a NumPy dtype, for example x.astype(np.float64)"
        raise GraphError(f"a {name} of {dtype} is no array of numbers", fix=fix)
    if plain:
        return np.asarray(values)
    if np.any(values.isna()):
        fix = "fill them, for example x.fillna(0)", "use x.astype(np.float64), where NaN is meant"
        raise GraphError(f"a {name} of {dtype} has missing values", fix=fix)
    return values.to_numpy(dtype=storage)


_READERS: dict[str, Callable[[Any, str], NDArray[Any]]] = {"torch": _of_torch, "pandas": _of_pandas}
