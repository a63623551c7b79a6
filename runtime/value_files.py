"""Files of inputs and outputs: .npy and .npz, with the dtypes that these formats cannot name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np

from graphir.errors import shortened
from graphir.hints import Array
from graphir.ops.grammar import bits_of, is_foreign
from graphir.promotion.scalars import number
from graphir.public import DType, ExecutionError, GraphirError
from graphir.text.atomic_files import Replacement
from graphir.text.files import read_arrays


def read_input(text: str, dtype: DType | None = None) -> Any:
    """Read the value that a text names: `x.npy`, `file.npz`, `file.npz:key` or a Python number.

    The reader never unpickles. `dtype` is the dtype of the graph's input: it interprets the raw
    bits of an array whose dtype the file cannot name, unless the array's key names a dtype
    (`output0.bfloat16`). Raises ExecutionError that names the file.
    """
    path, key = _path_and_key(text)
    if path is None:
        value = number(text)
        if value is not None:
            return value
        if not Path(text).is_file():
            raise ExecutionError(
                f"{text!r} is neither a number nor a file",
                fix="give x.npy, file.npz:key or a number",
            )
    name, array = _load(path or text, key)
    return _with_dtype(array, name, dtype)


def write_outputs(path: str, arrays: Iterable[Array]) -> list[str]:
    """Save arrays as output0, output1, ... of an .npz; return a note for each raw-bits array.

    An .npz cannot name the dtypes of ml_dtypes. The function saves such an array as unsigned
    integers, under a name that ends in its dtype, which `read_input` reads back.
    """
    arrays_by_name: dict[str, Array] = {}
    notes: list[str] = []
    for i, array in enumerate(arrays):
        if not is_foreign(array.dtype):
            arrays_by_name[f"output{i}"] = array
            continue
        name = f"output{i}.{array.dtype.name}"
        arrays_by_name[name] = array.view(bits_of(array.dtype))
        notes.append(f"{name} is saved as the raw bits of {array.dtype.name}, as {path}:{name}")
    with Replacement() as files:
        np.savez(files.open(path), **cast(Any, arrays_by_name))
    return notes


def _path_and_key(text: str) -> tuple[str | None, str | None]:
    """Split `file.npz:key` at the colon; (None, None) for a text that names no .npy or .npz."""
    if text.endswith((".npy", ".npz")):
        return text, None
    path, colon, key = text.rpartition(".npz:")
    return (f"{path}.npz", key) if colon else (None, None)


def _load(path: str, key: str | None) -> tuple[str, Array]:
    """Load an array; return its name in the file ("" for .npy) and the array."""
    with open(path, "rb") as file:
        try:
            arrays = read_arrays(file)
            if isinstance(arrays, np.ndarray):
                return "", arrays
            name = _choose_array(path, arrays.files, key)
            array = arrays[name]
            if isinstance(cast(object, array), bytes):  # of a file of the archive that is no .npy
                raise ExecutionError(f"{path}: {name} is not an array", fix="save it by np.savez")
            return name, array
        except GraphirError:
            raise
        except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds
            reason = shortened(" ".join(str(error).split()).split(". ")[0])
            raise ExecutionError(f"{path} is not a readable .npy or .npz file: {reason}") from None


def _choose_array(path: str, names: list[str], key: str | None) -> str:
    if key is None and len(names) == 1:
        return names[0]
    if key in names:
        return key
    problem = "no array was asked for" if key is None else f"it has no {key!r}"
    raise ExecutionError(
        f"{path} holds {', '.join(names) or 'nothing'}, and {problem}", fix=f"write {path}:NAME"
    )


def _with_dtype(array: Array, name: str, dtype: DType | None) -> Array:
    """View raw bits in their dtype if the name's suffix or `dtype` determines it."""
    suffix = name.rpartition(".")[2]
    if array.dtype.kind == "u":
        dtype = next((dtype for dtype in DType if str(dtype) == suffix), None)
    elif array.dtype.kind != "V" or array.dtype.names:  # NumPy reads unknown dtypes as V
        return array
    if dtype is None or not is_foreign(dtype.storage):
        return array
    return array.view(dtype.storage) if dtype.storage.itemsize == array.dtype.itemsize else array
