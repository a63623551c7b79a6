"""The wire format of models: a scan of Protocol Buffers, typed and packed data of tensors.

Sources: onnx.proto, and "Encoding" of Protocol Buffers.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.ops.attributes import FrozenFile
from graphir.public import DType, GraphError

Buffer: TypeAlias = bytes | FrozenFile
Place: TypeAlias = tuple[int, int]

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

LARGE = 4096
"""The size in bytes from which the data of a tensor stays out of the parsed model."""

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


# -- typed and packed data


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


# -- the wire format


def scanned(
    data: Buffer, at: int, end: int, descriptor: Message, places: dict[bytes, Place], depth: int
) -> bytes:
    """Return a message with marks in place of the bytes of large tensors, and add their `places`.

    A mark is 32 bytes that nobody can foresee, so no tensor of the file has them as its own data.
    All other fields stay as they are.
    """
    if not depth:
        raise ValueError("messages are nested too deeply")
    parts: list[bytes] = []
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        length, wire = 0, tag & 7
        if wire == _LENGTH:
            length, at = _varint(data, at, end)
        elif wire == 0:
            _, at = _varint(data, at, end)
        else:
            length = {1: 8, 5: 4}.get(wire, end)
        first, at = at, at + length
        if at > end:
            raise ValueError(f"the field at byte {start} does not end")
        field = descriptor.fields_by_number.get(tag >> 3)
        if wire != _LENGTH or length < LARGE or field is None:
            parts.append(data[start:at])
        elif field.name == "raw_data":
            mark = os.urandom(32)
            places[mark] = first, length
            parts.append(_field(tag >> 3, mark))
        elif field.message_type is None:
            parts.append(data[start:at])
        else:
            inner = scanned(data, first, at, field.message_type, places, depth - 1)
            parts.append(_field(tag >> 3, inner))
    return b"".join(parts)


_LENGTH = 2
"""The wire type of fields with a length."""


def _varint(data: Buffer, at: int, end: int) -> Place:
    """Return the varint at a place, and the place after it."""
    result = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        result |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return result, at
    raise ValueError(f"the number at byte {at} does not end")


def _field(number: int, content: bytes) -> bytes:
    """Return a field with a length."""
    return _number(number << 3 | _LENGTH) + _number(len(content)) + content


def _number(value: int) -> bytes:
    """Return a number as a varint."""
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes((*result, value))
