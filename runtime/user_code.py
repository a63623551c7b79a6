"""The user's code: which files it is, and what its values were where it raised an error."""

from __future__ import annotations

import ast
import os
import re
import sys
import sysconfig
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, cast

from graphir.errors import GraphirError
from graphir.import_names import own_folders
from graphir.location import Location
from graphir.passes.analysis.expressions import expression, statement
from graphir.promotion.scalars import number_text
from graphir.source_text import source_tree

PROJECT = own_folders()
"""The starts of the files of this project."""

_FOLDERS = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path]
SITE_PACKAGES = tuple(
    dict.fromkeys(
        folder for folder in _FOLDERS if Path(folder).name in ("site-packages", "dist-packages")
    )
)
"""The folders of installed packages: the environment's, the user's, and others on the path."""

INSTALLED = (
    *(f"{folder}{os.sep}" for folder in (sysconfig.get_path("stdlib"), *SITE_PACKAGES)),
    *PROJECT,
    "<frozen",
)
"""The starts of the files of the standard library, of installed packages and of this project."""


@contextmanager
def noting_errors() -> Generator[None]:
    """Context manager: an exception about dtypes gets a note with its line and the dtypes there.

    The exception stays the program's. A refusal of the project says these itself.
    """
    try:
        yield
    except GraphirError:
        raise
    except Exception as error:
        with suppress(Exception):  # what the program's objects answer may not hide its error
            note = dtypes_at(error) if _ABOUT_DTYPES.search(str(error)) else ""
            if note and note not in getattr(error, "__notes__", ()):
                error.add_note(note)
        raise


_ABOUT_DTYPES = re.compile(r"type|overflow|cast|convert|Half|[Ff]loat|Double|int\d")


def dtypes_at(error: BaseException) -> str:
    """Return the user's lines that raised an error, the innermost first, with the values they name.

    Arrays have their dtype and shape. A name that the function has assigned before has the line of
    the last assignment. Returns "" if no line is the user's.
    """
    traceback, found = error.__traceback__, list[str]()
    while traceback is not None:
        frame = traceback.tb_frame
        if not frame.f_code.co_filename.startswith(INSTALLED):
            found.append(_described(frame, Location(frame.f_code, traceback.tb_lasti)))
        traceback = traceback.tb_next
    innermost = [text for text in found[::-1] if text][:MOST_FRAMES]
    return "\n".join(innermost)


MOST_FRAMES = 5
"""The most calls of the user's code that a note describes."""


def _described(frame: FrameType, place: Location) -> str:
    source = expression(place)
    node = statement(source.text) if source is not None else None
    if source is None or node is None:
        return ""
    assigned = _assignments(place)
    values: dict[str, str] = {}
    for name, value in _named(node, {**frame.f_globals, **frame.f_locals}):
        what = _what(value)
        line = assigned.get(name)
        since = "" if line is None else f" since line {line[0]}: {line[1]}"
        if what:
            values[name] = f"{name} is {what}{since}"
    head = f"line {place.line}: {source.brief}"
    return f"{head}: {'; '.join(values.values())}" if values else head


def _what(value: Any) -> str:
    """Return the dtype and shape of an array, and a number itself; "" for another value."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and isinstance(shape, tuple):
        sizes = ", ".join(str(x) for x in cast("tuple[Any, ...]", shape))
        return f"{str(dtype).removeprefix('torch.')}[{sizes}]"
    is_number = isinstance(value, (int, float, complex)) and not isinstance(value, bool)
    return number_text(value) if is_number else ""


def _named(node: ast.AST, variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and attributes that an expression reads, with their values."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) if name in variables:
                yield name, variables[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in variables:
                held = getattr(variables[name], "__dict__", {})
                if isinstance(held, dict) and attribute in held:
                    yield f"{name}.{attribute}", held[attribute]
            case _:
                pass


def _assignments(place: Location) -> dict[str, tuple[int, str]]:
    """Return the last line before a place at which its function assigns each name, and its text."""
    tree = source_tree(place.source)
    functions = [
        x
        for x in ast.walk(tree or ast.Module([], []))
        if isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        if x.lineno <= place.line <= (x.end_lineno or 0)
    ]
    scope: ast.AST | None = max(functions, key=lambda x: x.lineno, default=tree)
    assignments = [
        x
        for x in ast.walk(scope or ast.Module([], []))
        if isinstance(x, (ast.Assign, ast.AugAssign)) and x.lineno < place.line
    ]
    lines: dict[str, tuple[int, str]] = {}
    for node in sorted(assignments, key=lambda x: x.lineno):  # the last one of a name counts
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = (x for target in targets for x in ast.walk(target))
        text = ast.unparse(node)
        lines.update(
            (ast.unparse(x), (node.lineno, text))
            for x in names
            if isinstance(x, (ast.Name, ast.Attribute))
        )
    return lines
