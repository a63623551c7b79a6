"""Graphs in files: the text, and beside it the constants that are too large for text."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphir.archives import Archive
from graphir.errors import GraphError, ParseError
from graphir.parser import parse
from graphir.printer import graph_text, large_constants
from graphir.values import bits_of, is_foreign

if TYPE_CHECKING:
    from graphir.graph import Graph


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph's text to `path`, and its large constants beside it, in `path`.npz.

    OSError where a file cannot be written.
    """
    text, beside = Path(path), _beside(path)
    if arrays := large_constants(graph):
        with open(beside, "wb") as file:
            np.savez(file, allow_pickle=False, **{k: _plain(array) for k, array in arrays.items()})
    text.write_text(graph_text(graph) + "\n", encoding="utf-8", newline="\n")


def load(path: str | os.PathLike[str]) -> Graph:
    """The graph that `save` wrote; nothing in either file is ever executed or unpickled.

    ParseError names the file and the place in it where the text is malformed or a constant is
    missing, unreadable or of another type; OSError where there is no text.
    """
    beside = _beside(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8 text: {error}") from None
    try:
        with ExitStack() as files:
            return parse(text, _Beside(beside, files))
    except ParseError as error:
        both = f"{path} with {beside.name}" if "npz(" in text else f"{path}"
        raise ParseError(f"{both}: {error.message}", error.line, error.column) from None


class _Beside(dict[str, NDArray[Any]]):
    """The arrays of an .npz file that have been asked for; it is opened for the first."""

    def __init__(self, path: Path, files: ExitStack) -> None:
        super().__init__()
        self.path, self._files = path, files
        self._archive: Archive | None = None

    def __missing__(self, name: str) -> NDArray[Any]:
        try:
            if self._archive is None:
                self._archive = Archive(self._files.enter_context(self.path.open("rb")))
            if name not in self._archive.names:
                known = ", ".join(self._archive.names)
                raise GraphError(f"{self.path} has no array named {name!r}, only {known}")
            found = self[name] = self._archive.read(name)
        except FileNotFoundError:
            why = f"{self.path}, which has the values of large constants, is missing"
            raise GraphError(why) from None
        except GraphError:
            raise
        # Archives, compression and array headers each fail in ways of their own.
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise GraphError(f"{self.path} is not a readable .npz: {why}") from None
        return found


def _beside(path: str | os.PathLike[str]) -> Path:
    # Added to the whole name: net.v1 and net.v2 must not share their constants.
    return Path(f"{os.fspath(path)}.npz")


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """An array as .npy can hold it: those of ml_dtypes as their raw bits."""
    return array.view(bits_of(array.dtype)) if is_foreign(array.dtype) else array
