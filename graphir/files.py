"""Graphs in files: the text, and beside it the constants that are too large for text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
        return parse(text, _Archive(beside))
    except ParseError as error:
        both = f"{path} with {beside.name}" if "npz(" in text else f"{path}"
        raise ParseError(f"{both}: {error.message}", error.line, error.column) from None


class _Archive(dict[str, NDArray[Any]]):
    """The arrays of an .npz file, which is read when the first of them is asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def __missing__(self, name: str) -> NDArray[Any]:
        if not self:
            self.update(_arrays(self.path))
        if name not in self:
            raise GraphError(f"{self.path} has no array named {name!r}, only {', '.join(self)}")
        return self[name]


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise GraphError(f"{path}, which has the values of large constants, is missing") from None
    # Archives, compression and array headers each fail in ways of their own.
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise GraphError(f"{path} is not a readable .npz: {why}") from None


def _beside(path: str | os.PathLike[str]) -> Path:
    # Added to the whole name: net.v1 and net.v2 must not share their constants.
    return Path(f"{os.fspath(path)}.npz")


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """An array as .npy can hold it: those of ml_dtypes as their raw bits."""
    return array.view(bits_of(array.dtype)) if is_foreign(array.dtype) else array
