"""The messages of models: their types, and the typed and packed data of tensors.

Source: onnx.proto.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, GraphError
from graphir.ops.attributes import FrozenFile

Buffer: TypeAlias = bytes | FrozenFile

Onnx: TypeAlias = Any
"""The module onnx, of whose messages the project's own environment has no types."""

NodeProto: TypeAlias = Any
GraphProto: TypeAlias = Any
TensorProto: TypeAlias = Any
TypeProto: TypeAlias = Any
AttributeProto: TypeAlias = Any
FunctionProto: TypeAlias = Any
OpSchema: TypeAlias = Any
Message: TypeAlias = Any
"""A message of onnx.proto of any kind."""

TYPED_FIELDS = {
    "float_data": np.dtype(np.float32),
    "double_data": np.dtype(np.float64),
    "int64_data": np.dtype(np.int64),
    "uint64_data": np.dtype(np.uint64),
    "int32_data": np.dtype(np.int32),
    "string_data": np.dtype(object),
}
"""The fields of typed data and the dtypes of their values."""

_FIELDS = {
    **{dtype: field for field, dtype in TYPED_FIELDS.items()},
    np.dtype(np.complex64): "float_data",
    np.dtype(np.complex128): "double_data",
    np.dtype(np.uint32): "uint64_data",
}
"""The fields of typed data by storage dtype; int32_data has all others."""


def typed(tensor: TensorProto, dtype: DType, count: int, width: int) -> NDArray[Any]:
    """Return the flat array of typed data, in the storage dtype or as its bits."""
    storage = dtype.storage
    field = _FIELDS.get(storage, "int32_data")
    is_packed = width in (2, 4)  # int32_data then has bytes, each of several elements
    size = -(-count * width // 8) if is_packed else count * (1 + dtype.is_complex)
    data = getattr(tensor, field)
    if len(data) != size:
        sizes = [
            f"{len(getattr(tensor, name))} in {name}"
            for name in TYPED_FIELDS
            if len(getattr(tensor, name))
        ]
        raise GraphError(
            f"{dtype}{list(tensor.dims)} has {size} values in {field}",
            got=sizes[0] if sizes else "no data",
        )
    values = np.array(data, TYPED_FIELDS[field])
    if dtype.is_complex or values.dtype == storage:
        return values.view(storage)
    low, high = -(1 << width - 1), (1 << max(width, 8 if is_packed else 0)) - 1
    if dtype.is_integer and not is_packed:
        low, high = int(dtype.min), int(dtype.max)
    for value in (values.min(initial=0), values.max(initial=0)):
        if not low <= value <= high:
            raise GraphError(f"{field} of {dtype} is from {low} to {high}", got=str(value))
    bits = values.astype(f"u{storage.itemsize}")
    return unpacked(bits, count, width) if is_packed else bits


_CHUNK = 1 << 18
"""The number of elements unpacked at a time; it fills whole bytes at each width."""


def unpacked(data: NDArray[np.uint8], count: int, width: int) -> NDArray[np.uint8]:
    """Return elements of 2, 4 or 6 bits, the first in the low bits, as a byte each."""
    result = np.empty(count, np.uint8)
    for first in range(0, count, _CHUNK):
        size = min(_CHUNK, count - first)
        chunk = data[first * width // 8 : (first + size) * width // 8 + 1]
        bits = np.unpackbits(chunk, count=size * width, bitorder="little").reshape(size, width)
        result[first : first + size] = np.packbits(bits, axis=1, bitorder="little")[:, 0]
    return result
