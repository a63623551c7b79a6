"""The source files of user programs: the only place that reads their lines.

A path reaches this module from running code, which Python itself loaded, or from `path_under`,
which confines the names that a file of text gives to a directory that the user named.
"""

from __future__ import annotations

import linecache
import os
import stat

LARGEST = 1 << 24
"""The most bytes of a source file whose lines are read."""


def source_line(path: str, number: int) -> str:
    """A line of a source file, counted from 1, with its end; empty where the source is not at hand.

    A file is read where it is regular and at most LARGEST bytes long: not a device, not a FIFO.
    """
    return linecache.getline(path, number) if path and _is_readable(path) else ""


def path_under(directory: str | os.PathLike[str], file: str) -> str:
    """The path of a file below a directory; empty for one outside, through links too."""
    try:
        root = os.path.realpath(directory)
        path = os.path.realpath(os.path.join(root, file))
    except (OSError, ValueError):  # of NUL, say
        return ""
    return path if path.startswith(os.path.join(root, "")) else ""


def displayed_path(path: str) -> str:
    """A path as people write it: relative to the working directory when inside it."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # the working directory was removed
        return path
    return path.removeprefix(here)


def _is_readable(path: str) -> bool:
    """Whether reading lines ends: linecache has them, or the file is regular and not too large."""
    if path in linecache.cache:
        return True
    try:
        status = os.stat(path)
    except OSError:
        return not os.path.isabs(path)  # linecache looks for it as Python looks for modules
    except ValueError:  # NUL or a lone surrogate
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST
