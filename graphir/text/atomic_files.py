"""Files replaced whole: a reader, and a crash, meets the old content or the new, never a part."""

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
    """Write a file whole; OSError, and the old file, where that cannot be done."""
    with Replacement() as files:
        files.open(path).write(data)


class Replacement:
    """Files written beside those that they replace, all of them once all are on the disk.

    A `with` block: `open(path)` is a binary file to write and read back. Where the block ends
    without an error each is synced, then each takes the place of its path, in the order of opening,
    with the permissions of the old file; else none does. What is no regular file, such as
    /dev/stdout, is written directly.
    """

    def __init__(self) -> None:
        self._files = ExitStack()
        self._pending: list[tuple[IO[bytes], Path, Path]] = []

    def open(self, path: str | os.PathLike[str]) -> IO[bytes]:
        """A file whose content will be that of `path`; OSError names `path`."""
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
            with suppress(OSError):  # of a full disk, already raised by the sync
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
        for folder in {final.parent for _, _, final in self._pending}:
            _sync(folder)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Generator[None]:
    """Have an OSError name the path that the user gave."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _sync(folder: Path) -> None:
    """Make the new names of a folder last; where a system does not sync folders, as it does."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
