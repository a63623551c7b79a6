"""Flat code that is recorded: the block of a `with` statement, and the lines of a script."""

from __future__ import annotations

import ast
import builtins
import ctypes
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, cast

import numpy as np

from graphir.runtime.recording.captured import ITEM, ArraySlot, SlotOwner, is_user, names_of
from graphir.runtime.recording.numpy_.calls import is_scalar_type, reading_reason
from graphir.runtime.recording.numpy_.watched_code import watched_code
from graphir.runtime.recording.operands import traced_leaves
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.results import leaves
from graphir.runtime.recording.values import RecordedValue, TracedScalar
from graphir.source_text import source_tree


class BlockFrame(SlotOwner):
    """The frame whose code has a recorded block."""

    def __init__(self, frame: FrameType) -> None:
        self._frame, code, self._line = frame, frame.f_code, frame.f_lineno
        self._names = {*names_of(code), *code.co_varnames, *code.co_cellvars, *code.co_freevars}
        self.is_module = frame.f_locals is frame.f_globals
        self.name = "block" if self.is_module else code.co_name

    @property
    def caller(self) -> CodeType:
        """The code that calls the frame's code."""
        frame: FrameType | None = self._frame
        while frame is not None and frame.f_code is self._frame.f_code:
            frame = frame.f_back
        return BlockFrame.__init__.__code__ if frame is None else frame.f_code

    @property
    def file(self) -> str:
        """The file of the frame's code."""
        return self._frame.f_code.co_filename

    @property
    def variables(self) -> dict[str, Any]:
        """The variables that the code names, with their values now."""
        values = self._frame.f_locals
        return {name: values[name] for name in values if name in self._names}

    def slots(self) -> Iterator[ArraySlot]:
        """Yield the slots of the variables, and of the globals of a function."""
        for owner in (self,) if self.is_module else (self, self._frame.f_globals):
            values = self.variables if owner is self else self._frame.f_globals
            for name in self._names & values.keys():
                yield ArraySlot(values[name], owner, name, ITEM)

    def reads(self) -> Iterator[tuple[str, int, list[Any]]]:
        """Yield the calls in the block whose functions read recorded values from memory unseen.

        Python runs the block with the code that it has, in which no call is watched. Each call has
        its text, its line, and the values of the variables in its arguments.
        """
        values = {**vars(builtins), **self._frame.f_globals, **self.variables}
        for call in calls_in_block(self.file, self._line):
            function = _value_of(call.func, values)
            if reading_reason(function) or is_scalar_type(function):
                names = [name for part in call.args for name in _names_read(part)]
                read_values = traced_leaves([values.get(name) for name in names])
                yield ast.unparse(call.func), call.lineno, read_values

    def __getitem__(self, name: str) -> Any:
        return self._frame.f_locals[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Set a variable; before Python 3.13 those of a function are copies to write back."""
        values: Any = self._frame.f_locals
        values[name] = value
        if not self.is_module:
            frame = ctypes.py_object(self._frame)
            ctypes.pythonapi.PyFrame_LocalsToFast(frame, ctypes.c_int(0))


def calls_in_block(file: str, line: int) -> Iterator[ast.Call]:
    """Yield the calls in the body of the `with` statement at a line of a file."""
    tree = source_tree(file)  # None of a notebook's cell whose lines are not Python's
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.With) and node.lineno <= line < node.body[0].lineno:
            for part in node.body:
                yield from (x for x in ast.walk(part) if isinstance(x, ast.Call))


def _names_read(node: ast.AST) -> Iterator[str]:
    """Yield the variables whose elements an expression reads, beyond their shapes and dtypes."""
    if isinstance(node, ast.Name):
        yield node.id
    is_of_shape = isinstance(node, ast.Attribute) and node.attr in _OF_TYPE
    is_length = isinstance(node, ast.Call) and ast.unparse(node.func) == "len"
    if not (is_of_shape or is_length):
        for part in ast.iter_child_nodes(node):
            yield from _names_read(part)


_OF_TYPE = ("shape", "size", "ndim", "dtype", "nbytes", "itemsize")


def _value_of(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """Return the value of a name or of an attribute of a module; None of other expressions."""
    if isinstance(node, ast.Name):
        return values.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _value_of(node.value, values)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


class Script:
    """A script as a function without arguments, which runs it as `python script.py` does.

    `arguments` are those of the command line. The result has the script's variables by name.
    """

    def __init__(self, path: str, arguments: Sequence[str] = ()) -> None:
        self.path, self.arguments = path, [path, *arguments]
        self.__name__ = Path(path).stem

    def __call__(self) -> dict[str, Any]:
        """Run the script; its `sys.exit` ends it."""
        file = Path(self.path).resolve()
        module = ModuleType("__main__")
        module.__file__ = str(file)
        code = watched_code(file.read_bytes(), self.path)
        former = sys.argv, sys.modules["__main__"]
        sys.argv, sys.modules["__main__"] = self.arguments, module
        sys.path.insert(0, str(file.parent))
        os.environ.setdefault("MPLBACKEND", "Agg")  # figures need no screen
        try:
            exec(code, vars(module))
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        finally:
            sys.argv, sys.modules["__main__"] = former
            sys.path.remove(str(file.parent))
        return {name: x for name, x in vars(module).items() if is_result(x) and name[:2] != "__"}


def is_result(value: Any) -> bool:
    """Whether a variable may hold results: an array, a number, a container, a user's object."""
    kinds = (np.ndarray, np.generic, bool, int, float, complex, list, tuple, dict)
    kind: Any = cast("object", type(value))
    is_object = is_user(kind.__module__) and not isinstance(value, (type, ModuleType))
    return isinstance(value, kinds) or (is_object and not callable(value))


def variable_outputs(recorder: Recorder, variables: dict[str, Any]) -> list[Any]:
    """Return the values that flat code computed, in its variables.

    Data that the code only loaded, and constants, are outputs if nothing else leaves the code.
    """
    own = {name: x for name, x in variables.items() if not _is_deep(x)}
    values = [x for x in leaves(own, None, recorder) if isinstance(x, _RECORDED)]
    results = [x for x in values if is_computed(recorder, x)]
    if results or recorder.leaving.rounds:
        return results
    return values or list(leaves(variables, None, recorder))


def _is_deep(value: Any) -> bool:
    """Whether a value is an object or a long list, whose arrays are the outputs of last resort."""
    if isinstance(value, (list, tuple, dict)):
        return len(cast("list[Any]", value)) > MOST_PARTS
    return not isinstance(value, (np.ndarray, np.generic, int, float, complex))


MOST_PARTS = 8
"""The most parts of a list, a tuple or a dict that are outputs."""


def is_computed(recorder: Recorder, value: Any) -> bool:
    """Whether a value is a recorded one that the program computed from others."""
    symbol = recorder.before(value) if isinstance(value, _RECORDED) else None
    return symbol is not None and bool(symbol.args)


_RECORDED = (RecordedValue, TracedScalar)
