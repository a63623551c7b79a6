"""Graph files: the text, and beside it an .npz archive of the constants too large for text."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from graphir.errors import GraphError, ParseError
from graphir.ops.grammar import bits_of, is_foreign
from graphir.source_text import displayed_path
from graphir.text.atomic_files import Replacement
from graphir.text.parser import VERSION, Directory, Parser
from graphir.text.printer import graph_text, large_constants

if TYPE_CHECKING:
    from graphir.ir.graph import Graph


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph's text to `path`, and its large constants to `path`.npz.

    The text begins with the version of the format and, if there is an archive, the archive's
    digest. Raises OSError where a file cannot be written; the old files are then unchanged.
    """
    head = f"graphir {VERSION}\n"
    with Replacement() as files:
        if arrays := large_constants(graph):
            archive = files.open(_beside(path))
            np.savez(
                archive, allow_pickle=False, **{k: _plain(array) for k, array in arrays.items()}
            )
            head += f'archive sha256 "{_digest(archive)}"\n'
        files.open(path).write(f"{head}{graph_text(graph)}\n".encode())


def load(path: str | os.PathLike[str], sources: Directory | None = None) -> Graph:
    """Read a graph that `save` wrote. Loading never executes or unpickles anything.

    Reports read the source files that the text names only where these lie inside the directory
    `sources`. Raises ParseError, with the file and the position, for malformed text and for a
    constant that is missing, unreadable, of another type or of another graph. Raises OSError where
    the text cannot be read.
    """
    beside = _beside(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8 text: {error}") from None
    try:
        with ExitStack() as files:
            parser = Parser(text, sources)
            parser.constants = _Beside(beside, parser.archive, files)
            graph = parser.graph()
            graph.describe(file=displayed_path(os.fspath(path)))
            return graph
    except ParseError as error:
        both = f"{path} with {beside.name}" if "npz(" in text else f"{path}"
        raise error.within(both) from None


UNPACKED = 1 << 26, 100
"""The most bytes that an archive unpacks to: a number, and a multiple of the file's size."""


def read_arrays(file: IO[bytes]) -> NDArray[Any] | NpzFile[Any]:
    """Return the array of a .npy file, or the arrays of an .npz file, each read at its look-up.

    Nothing is unpickled. Raises the errors of np.load, and ValueError for an archive that unpacks
    to more than UNPACKED.
    """
    if not file.read(6).startswith((b"\x93NUMPY", b"PK\x03\x04", b"PK\x05\x06")):
        raise ValueError("it does not begin as such files do")  # np.load takes it for a pickle
    file.seek(0)
    arrays = cast("NDArray[Any] | NpzFile[Any]", np.load(file, allow_pickle=False))
    if isinstance(arrays, NpzFile) and arrays.zip is not None:
        size = sum(member.file_size for member in arrays.zip.infolist())
        most = UNPACKED[0] + UNPACKED[1] * os.fstat(file.fileno()).st_size
        if size > most:
            raise ValueError(f"it would unpack to {size} bytes; at most {most} are unpacked")
    return arrays


class _Beside(dict[str, NDArray[Any]]):
    """The constants of the .npz file beside a text, by name.

    The file is opened at the first look-up, and each array is read at its first look-up.
    """

    def __init__(self, path: Path, digest: str | None, files: ExitStack) -> None:
        super().__init__()
        self.path, self._digest, self._files = path, digest, files
        self._archive: NpzFile[Any] | None = None

    def __missing__(self, name: str) -> NDArray[Any]:
        try:
            if self._archive is None:
                self._archive = self._open_archive()
            array = self[name] = self._archive[name]
        except (GraphError, KeyError):
            raise
        # zipfile, decompression and array headers each raise exceptions of their own.
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise GraphError(f"{self.path} is not a readable .npz: {why}") from None
        return array

    def _open_archive(self) -> NpzFile[Any]:
        if not stat.S_ISREG(self.path.stat().st_mode):
            raise GraphError(f"{self.path} is not a regular file")
        file = self._files.enter_context(self.path.open("rb"))
        if self._digest is not None and _digest(file) != self._digest:
            raise GraphError(
                f"{self.path} is not the archive that was saved with this text: its SHA-256 digest "
                "differs",
                fix="save the graph again, or restore both files of one save",
            )
        file.seek(0)
        arrays = read_arrays(file)
        if not isinstance(arrays, NpzFile):
            raise GraphError(f"{self.path} is a .npy file, and no .npz archive")
        return arrays


def _digest(file: IO[bytes]) -> str:
    """Return the SHA-256 digest of a whole file, in hexadecimal."""
    file.seek(0)
    return hashlib.file_digest(cast(Any, file), "sha256").hexdigest()


def _beside(path: str | os.PathLike[str]) -> Path:
    # The suffix is appended to the whole name, so that net.v1 and net.v2 have separate archives.
    return Path(f"{os.fspath(path)}.npz")


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that .npy can hold: an array of an ml_dtypes dtype becomes its raw bits."""
    return array.view(bits_of(array.dtype)) if is_foreign(array.dtype) else array
