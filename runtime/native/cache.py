"""Object code on disk, in the user's cache directory, so that it is made once for all processes.

An absolute path as GRAPHIR_NATIVE_CACHE in the environment is where it lies instead; 0, or whatever
else is no such path, switches it off.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

MOST = 256 << 20
"""Bytes on disk, above which the oldest files go."""

_BLOCK = 4096
_DIGEST = 32
_OFTEN = 64
_SUFFIX = ".o"
_writes = 0


def key_of(*parts: str) -> str:
    """A name for what is made of these."""
    made = blake2b(digest_size=_DIGEST)
    for part in parts:
        made.update(f"{len(part)} {part}".encode())
    return made.hexdigest()


def read(key: str) -> bytes | None:
    """What was written under a key; None where it is not there, or not whole."""
    folder = directory()
    if folder is None:
        return None
    try:
        found = (folder / (key + _SUFFIX)).read_bytes()
    except OSError:
        return None
    data = found[_DIGEST:]
    return data if found[:_DIGEST] == _checksum(key, data) else None


def write(key: str, data: bytes) -> None:
    """Keep it, if that can be done: readers see all of it or nothing."""
    global _writes
    folder = directory()
    if folder is None:
        return
    made = folder / f"{key}.{os.getpid()}.{time.time_ns()}"
    try:
        made.write_bytes(_checksum(key, data) + data)
        made.replace(folder / (key + _SUFFIX))
    except OSError:  # a full disk, say
        with suppress(OSError):
            made.unlink(missing_ok=True)
    _writes += 1
    if _writes % _OFTEN == 1:
        prune(folder)


def prune(folder: Path) -> None:
    """Remove the oldest files beyond MOST bytes, those of killed writers too."""
    found: list[tuple[float, int, str]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for one in entries:
            with suppress(OSError):
                status = one.stat()
                size = -(-status.st_size // _BLOCK) * _BLOCK
                found.append((status.st_mtime, size, one.path))
    room = MOST
    for _, size, path in sorted(found, reverse=True):
        room -= size
        if room < 0:
            with suppress(OSError):
                os.unlink(path)


def directory() -> Path | None:
    """Where files lie, made if it is not there; None where others could have put code into it."""
    given = os.environ.get("GRAPHIR_NATIVE_CACHE", "")
    try:
        folder = Path(given).expanduser() if given else _user_cache() / "graphir" / "native"
        if not folder.is_absolute():  # it would be another one wherever the process goes
            return None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix":
            status = folder.stat()
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return None
    except (OSError, RuntimeError):  # no home
        return None
    return folder


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".cache"


def _checksum(key: str, data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST, key=key.encode()[:64]).digest()
