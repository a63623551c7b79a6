"""Object code on disk, in the user's cache directory, so that it is made once for all processes.

An absolute path as GRAPHIR_NATIVE_CACHE in the environment is where it lies instead; 0, or whatever
else is no such path, switches it off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

MOST = 256 << 20
"""Bytes on disk, above which the oldest files go."""

_BLOCK, _DIGEST, _OFTEN = 4096, 32, 64
_writes = count()


def kept(make: Callable[[], bytes], *parts: object) -> bytes:
    """What `make` gives, which depends on nothing but these parts: from disk if it is there."""
    folder = directory()
    if folder is None:
        return make()
    path = folder / f"{_digest(repr(parts).encode()).hex()}.o"
    found = read(path)
    if found is None:
        found = make()
        write(path, found)
    return found


def read(path: Path) -> bytes | None:
    """What was written to a file; None where it is not there, or not whole."""
    try:
        found = path.read_bytes()
    except OSError:
        return None
    data = found[_DIGEST:]
    return data if found[:_DIGEST] == _digest(data, path.stem) else None


def write(path: Path, data: bytes) -> None:
    """Keep it, if that can be done: readers see all of it or nothing."""
    made = path.with_suffix(f".{os.getpid()}.{time.time_ns()}")
    with suppress(OSError):  # a full disk, say
        try:
            made.write_bytes(_digest(data, path.stem) + data)
            made.replace(path)
        finally:
            made.unlink(missing_ok=True)
    if next(_writes) % _OFTEN == 0:
        prune(path.parent)


def prune(folder: Path) -> None:
    """Remove the oldest files beyond MOST bytes, those of killed writers too."""
    room = MOST
    with suppress(OSError):  # another process may be at it
        found = [(one.stat(), one) for one in folder.iterdir()]
        for status, path in sorted(found, key=lambda one: -one[0].st_mtime):
            room -= -(-status.st_size // _BLOCK) * _BLOCK
            if room < 0:
                with suppress(OSError):
                    path.unlink()


def directory() -> Path | None:
    """Where files lie, made if it is not there; None where others could have put code into it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else "~/.cache"
    try:
        folder = Path(os.environ.get("GRAPHIR_NATIVE_CACHE") or f"{base}/graphir/native")
        folder = folder.expanduser()
        if not folder.is_absolute():  # it would be another one wherever the process goes
            return None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):  # no home
        return None
    shared = os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022)
    return None if shared else folder


def _digest(data: bytes, key: str = "") -> bytes:
    from hashlib import blake2b  # which loads OpenSSL

    return blake2b(data, digest_size=_DIGEST, key=key.encode()[:64]).digest()
