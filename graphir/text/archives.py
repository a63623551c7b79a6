"""A reader of untrusted .npy and .npz files: it checks every size before it allocates memory.

`np.load` allocates the array that a header declares, however little data follows, and decompresses
without bounds. This reader compares the declared size with the size of the data, and bounds the
total decompressed size. It never unpickles. Source of the format: numpy.lib.format, "Format Version
1.0" to "3.0".
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

FREE, EXPANSION = 1 << 26, 100
"""The bound on an archive's decompressed size: FREE bytes plus EXPANSION times the file size."""

_HEADER = 10_000
"""The most bytes of an array header, as in np.load."""

_MAGIC = b"\x93NUMPY"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 1 << 22


def read_array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Read the array of a .npy file of `size` bytes.

    Raises ValueError for a malformed file, and for an array of Python objects.
    """
    shape, fortran, dtype, header_size = _header(file)
    if dtype.hasobject:
        raise ValueError("its elements are Python objects; nothing is ever unpickled")
    if any(n < 0 for n in shape):
        raise ValueError(f"its header says shape {shape}")
    size_needed, size_left = math.prod(shape) * dtype.itemsize, size - header_size
    if size_needed > size_left:
        raise ValueError(
            f"its header says {dtype}{list(shape)}, which is {size_needed} "
            f"bytes, and has {size_left}"
        )
    data = _bytes(file, size_needed)
    return np.ndarray(shape, dtype, data, order="F" if fortran else "C")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Read a .npy header: return the shape, Fortran order, the dtype and the header's size."""
    magic = file.read(len(_MAGIC) + 2)
    if magic[:-2] != _MAGIC or magic[-2] not in (1, 2, 3):
        raise ValueError("it does not begin as .npy files do")
    first = magic[-2] == 1
    digits = file.read(2 if first else 4)
    length = int.from_bytes(digits, "little")
    if length > _HEADER:
        raise ValueError(f"its header is {length} bytes long; at most {_HEADER} are read")
    text = io.BytesIO(digits + file.read(length))
    formats = np.lib.format
    read_header = formats.read_array_header_1_0 if first else formats.read_array_header_2_0
    fields: Any = read_header(text)
    return (*fields, len(magic) + len(digits) + length)


def _bytes(file: IO[bytes], size: int) -> NDArray[np.uint8]:
    data, at = np.empty(size, np.uint8), 0
    view = memoryview(cast(Any, data))
    while at < size:
        count = cast(Any, file).readinto(view[at : at + _CHUNK])
        if not count:
            raise ValueError(f"it ends after {at} of {size} bytes")
        at += count
    return data


class Archive:
    """The arrays of an .npz file by name, each read on demand.

    Raises the errors of zipfile, and ValueError for contents that decompress beyond the bound of
    FREE and EXPANSION.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file)
        self._left = FREE + EXPANSION * file.seek(0, io.SEEK_END)
        self._members = {
            member.filename.removesuffix(".npy"): member for member in self._zip.infolist()
        }

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._members)

    def read(self, name: str) -> NDArray[Any]:
        """Read the array of one of `names`; ValueError where it is malformed or too large."""
        member = self._members[name]
        if member.compress_type not in _COMPRESSIONS:
            raise ValueError(f"{name!r} is packed in another way than NumPy packs")
        if member.file_size > self._left:
            raise ValueError(
                f"{name!r} would unpack to {member.file_size} bytes; of all arrays at most "
                f"{EXPANSION} times the file's size and {FREE} bytes more are unpacked"
            )
        self._left -= member.file_size
        with self._zip.open(member) as file:
            return read_array(file, member.file_size)


def is_archive(file: IO[bytes]) -> bool:
    """Answer whether a file begins with the signature of a zip file, as .npz files do."""
    start = file.read(4)
    file.seek(0)
    return start in (b"PK\x03\x04", b"PK\x05\x06")
