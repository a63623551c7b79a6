"""A cache of object code on disk, in the user's cache directory; processes share it.

GRAPHIR_NATIVE_CACHE in the environment replaces the directory if it is an absolute path. Any other
value, such as 0, switches the cache off.

The security boundary: code in the cache runs with the rights of the user. The cache is used if the
user owns the directory and nobody else may write to it; it is made with mode 0700. The checksum
guards against damage alone: a process that can write to the directory, such as another process of
the user, can make code run.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from graphir.runtime.program.cost_model import DISK, DISK_WRITES

_BLOCK, _DIGEST = 4096, 32
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_writes = count()


def cached(make: Callable[[], bytes], *parts: object) -> bytes:
    """Return the result of `make`, from disk if the cache has it.

    `parts` are the cache key: the result may depend on nothing else.
    """
    folder = open_folder()
    if folder is None:
        return make()
    name = f"{_digest(repr(parts).encode()).hex()}.o"
    data = folder.read(name)
    if data is None:
        data = make()
        folder.write(name, data)
    return data


def open_folder() -> Folder | None:
    """Return the cache, whose directory is made if it is missing.

    The answer is None if the cache is switched off, if the system has no owners of files, and if
    others than the user could write code into the directory.
    """
    path = directory()
    if path is None or not hasattr(os, "geteuid"):
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(0o700, exist_ok=True)
        status = path.stat()
    except OSError:
        return None
    is_own = status.st_uid == os.geteuid() and not status.st_mode & _OTHERS
    return Folder(path) if is_own else None


def directory() -> Path | None:
    """Return the directory of the cache by the environment; None if the cache is switched off."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else "~/.cache"
    try:
        path = Path(os.environ.get("GRAPHIR_NATIVE_CACHE") or f"{base}/graphir/native").expanduser()
    except RuntimeError:  # the user has no home directory
        return None
    # A relative path would be another directory after each change of the working directory.
    return path if path.is_absolute() else None


class Folder:
    """A directory of files by name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is missing or damaged."""
        try:
            with open(self.path / name, "rb") as file:
                content = file.read(DISK)
        except OSError:
            return None
        data = content[_DIGEST:]
        return data if content[:_DIGEST] == _digest(data, name) else None

    def write(self, name: str, data: bytes) -> None:
        """Write a file if possible, atomically: readers see the whole file or none."""
        partial = self.path / f"{name}.{os.getpid()}.{time.time_ns()}"
        with suppress(OSError):  # for example, a full disk
            try:
                with os.fdopen(
                    os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb"
                ) as file:
                    file.write(_digest(data, name) + data)
                os.replace(partial, self.path / name)
            finally:
                partial.unlink(missing_ok=True)
        if next(_writes) % DISK_WRITES == 0:
            self.prune()

    def prune(self) -> None:
        """Remove the oldest files beyond DISK bytes, including partial files of killed writers."""
        spare = DISK
        with suppress(OSError):  # another process may prune at the same time
            files = [(entry.stat(), entry.path) for entry in os.scandir(self.path)]
            for status, path in sorted(files, key=lambda file: -file[0].st_mtime):
                spare -= -(-status.st_size // _BLOCK) * _BLOCK
                if spare < 0:
                    with suppress(OSError):
                        os.unlink(path)


def _digest(data: bytes, key: str = "") -> bytes:
    from hashlib import blake2b  # imported late, because hashlib loads OpenSSL

    return blake2b(data, digest_size=_DIGEST, key=key.encode()[:64]).digest()
