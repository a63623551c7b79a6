"""A cache of object code on disk, in the user's cache directory; processes share it.

GRAPHIR_NATIVE_CACHE in the environment replaces the directory if it is an absolute path. Any other
value, such as 0, switches the cache off.

The security boundary: code in the cache runs with the rights of the user. The cache trusts a file
if nobody but the user and root can have written it. The check is that of sshd's StrictModes
(OpenSSH, misc.c, safe_path): the user owns the directory and each file, the user or root owns each
ancestor, and nobody else may write to any of them. A sticky ancestor, such as /tmp, may be
writable, because in it nobody can rename another user's entries. The cache opens the directory
once, component by component and without following links, and does everything else through the
descriptor, so an attacker cannot exchange anything between check and use. The checksum guards
against damage alone: a process that can write to the directory, such as another process of the
user, can make code run.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType

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
    with folder:
        name = f"{_digest(repr(parts).encode()).hex()}.o"
        data = folder.read(name)
        if data is None:
            data = make()
            folder.write(name, data)
        return data


def open_folder() -> Folder | None:
    """Open the cache; return None if it is switched off, or if others could write code into it."""
    path = directory()
    if path is None or not _BY_DESCRIPTOR:
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
    """A directory of files by name, held open by its descriptor until the end of a `with` block.

    The constructor makes a missing directory. It raises OSError if it cannot open the directory,
    or if others than the user can change it.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = _open_directory(os.path.realpath(path))

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is missing, damaged or not the user's alone."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(name, flags, dir_fd=self._descriptor), "rb") as file:
                status = os.fstat(file.fileno())
                if not (stat.S_ISREG(status.st_mode) and _is_own(status)):
                    return None
                content = file.read(DISK)
        except OSError:
            return None
        data = content[_DIGEST:]
        return data if content[:_DIGEST] == _digest(data, name) else None

    def write(self, name: str, data: bytes) -> None:
        """Write a file if possible, atomically: readers see the whole file or none."""
        beside, folder = f"{name}.{os.getpid()}.{time.time_ns()}", self._descriptor
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(OSError):  # for example, a full disk
            try:
                with os.fdopen(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as file:
                    file.write(_digest(data, name) + data)
                os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(beside, dir_fd=folder)
        if next(_writes) % DISK_WRITES == 0:
            self.prune()

    def prune(self) -> None:
        """Remove the oldest files beyond DISK bytes, including partial files of killed writers."""
        room, folder = DISK, self._descriptor
        with suppress(OSError):  # another process may prune at the same time
            names = os.listdir(folder)
            files = [(os.stat(x, dir_fd=folder, follow_symlinks=False), x) for x in names]
            for status, name in sorted(files, key=lambda file: -file[0].st_mtime):
                room -= -(-status.st_size // _BLOCK) * _BLOCK
                if room < 0:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=folder)


_BY_DESCRIPTOR = {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
"""Whether the system can open files relative to an open directory; Windows cannot."""


def _open_directory(path: str) -> int:
    """Return the descriptor of a directory whose path has no links; check each component once open.

    Missing directories are made. Raises OSError, of which PermissionError means that others than
    the user can change a component.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.sep, flags)
    try:
        for name in filter(None, path.split(os.sep)):
            if not _is_safe_ancestor(os.fstat(descriptor)):
                raise PermissionError(f"others than the user can change what is in {path}")
            try:
                inner = os.open(name, flags, dir_fd=descriptor)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=descriptor)
                inner = os.open(name, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        if not _is_own(os.fstat(descriptor)):
            raise PermissionError(f"{path} is not the user's alone")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_own(status: os.stat_result) -> bool:
    """Whether the user owns a file, and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS


def _is_safe_ancestor(status: os.stat_result) -> bool:
    """Whether only the user and root can exchange the user's entries in a directory."""
    is_trusted = status.st_uid in (0, os.geteuid())
    return is_trusted and (not status.st_mode & _OTHERS or bool(status.st_mode & stat.S_ISVTX))


def _digest(data: bytes, key: str = "") -> bytes:
    from hashlib import blake2b  # imported late, because hashlib loads OpenSSL

    return blake2b(data, digest_size=_DIGEST, key=key.encode()[:64]).digest()
