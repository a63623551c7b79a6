"""Atomic replacement of files: readers see the complete old or new content.

The new content goes to a temporary file in the same folder. That file is synced to disk, and then
renamed to the path that it replaces.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the content of a file atomically; an OSError leaves the old file unchanged."""
    with Replacement() as files:
        files.open(path).write(data)


class Replacement:
    """A context manager that replaces several files, once all new files are complete.

    Inside the `with` block, `open(path)` returns a binary file to write and read back. If the block
    ends without an error, the manager syncs every file, then renames each to its path, in the
    order of opening and with the permissions of the old file. After an error no path changes. A
    path that is not a regular file, such as /dev/stdout, is written directly.
    """

    def __init__(self) -> None:
        self._files = ExitStack()
        self._pending: list[tuple[IO[bytes], Path, Path]] = []

    def open(self, path: str | os.PathLike[str]) -> IO[bytes]:
        """Return a file whose content will replace that of `path`; an OSError names `path`."""
        final = Path(os.path.realpath(path))
        mode = _mode(final)
        if mode is not None and not stat.S_ISREG(mode):
            return self._files.enter_context(final.open("wb"))
        beside = final.with_name(f".graphir-{os.getpid()}-{secrets.token_hex(4)}")
        with _naming(path):
            file = self._files.enter_context(beside.open("x+b"))
            self._pending.append((file, beside, final))
            if mode is not None:
                beside.chmod(stat.S_IMODE(mode))
        return file

    def __enter__(self) -> Replacement:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            with suppress(OSError):  # the sync has already raised for a full disk
                self._files.close()
            for _, beside, _ in self._pending:
                beside.unlink(missing_ok=True)

    def _commit(self) -> None:
        for file, _, final in self._pending:
            with _naming(final):
                file.flush()
                os.fsync(file.fileno())
                file.close()
        for _, beside, final in self._pending:
            with _naming(final):
                beside.replace(final)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Generator[None]:
    """Re-raise an OSError of the block with the path that the user gave."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
