"""A cache of object code on disk, in the user's cache directory; processes share it.

GRAPHIR_NATIVE_CACHE in the environment replaces the directory if it is an absolute path. Any other
value, such as 0, switches the cache off.

The security boundary: code in the cache runs with the rights of the user. The cache makes its
directory for the user alone (mode 0700), and uses a directory only if the user owns it and nobody
else may write to it. The checksum guards against damage alone: a process that can write to the
directory, such as another process of the user, can make code run.
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
    """Open the cache; return None if it is switched off, or if others could write code into it."""
    path = directory()
    if path is None or not hasattr(os, "geteuid"):  # Windows
        return None
    try:
        return Folder(path)
    except OSError:
        return None


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
    """A directory of files by name.

    The constructor makes a missing directory. It raises OSError if it cannot, or if others than the
    user can change the directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(0o700, parents=True, exist_ok=True)
        status = path.stat()
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"{path} is not the user's alone")

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is missing or damaged."""
        try:
            with (self.path / name).open("rb") as file:
                content = file.read(DISK)
        except OSError:
            return None
        data = content[_DIGEST:]
        return data if content[:_DIGEST] == _digest(data, name) else None

    def write(self, name: str, data: bytes) -> None:
        """Write a file if possible, atomically: readers see the whole file or none."""
        beside = self.path / f"{name}.{os.getpid()}.{time.time_ns()}"
        with suppress(OSError):  # for example, a full disk
            try:
                beside.write_bytes(_digest(data, name) + data)
                os.replace(beside, self.path / name)
            finally:
                beside.unlink(missing_ok=True)
        if next(_writes) % DISK_WRITES == 0:
            self.prune()

    def prune(self) -> None:
        """Remove the oldest files beyond DISK bytes, including partial files of killed writers."""
        room = DISK
        with suppress(OSError):  # another process may prune at the same time
            files = [(path.lstat(), path) for path in self.path.iterdir()]
            for status, path in sorted(files, key=lambda file: -file[0].st_mtime):
                room -= -(-status.st_size // _BLOCK) * _BLOCK
                if room < 0:
                    path.unlink(missing_ok=True)


def _digest(data: bytes, key: str = "") -> bytes:
    from hashlib import blake2b  # imported late, because hashlib loads OpenSSL

    return blake2b(data, digest_size=_DIGEST, key=key.encode()[:64]).digest()
