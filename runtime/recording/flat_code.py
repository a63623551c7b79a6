"""Flat code that is recorded: the lines of a script, and those of a notebook's cell.

`Script` and `CodeCell` are functions that `record` calls; `variable_outputs` finds their results.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from graphir.location import is_internal
from graphir.runtime.recording.captured import ITEM, ArraySlot, SlotOwner, is_user, names_of, slots
from graphir.runtime.recording.numpy_.watched_code import restore_code, watched_code
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.results import result_leaves
from graphir.runtime.recording.values import RecordedValue, TracedScalar
from graphir.runtime.user_code import INSTALLED


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


_VALUE = "__graphir_value__"
"""The variable that holds the value of a cell's last expression while the cell runs."""


class CodeCell(SlotOwner):
    """A cell as a function without arguments, which runs its code in a namespace.

    `tree` is the syntax tree of the code, whose lines linecache has under `file`. The result has
    the variables that the code names, and the value of a last expression, unless it is that of a
    variable, under `value_name`. `value` is that value as the code left it, or None without one.
    """

    def __init__(self, tree: ast.Module, file: str, name: str, namespace: dict[str, Any]) -> None:
        self.__name__ = name
        self.value: Any = None
        self._namespace, self._before = namespace, dict(namespace)
        last = tree.body[-1] if tree.body else None
        self.value_name = f"value of line {last.lineno}" if last else ""
        if isinstance(last, ast.Expr):
            target = ast.copy_location(ast.Name(_VALUE, ast.Store()), last)
            assignment = ast.copy_location(ast.Assign([target], last.value), last)
            tree = ast.Module([*tree.body[:-1], assignment], [])
        self._own = compile(tree, file, "exec", dont_inherit=True)
        self._watched = watched_code(tree, file)
        self._names = frozenset(names_of(self._own))

    def slots(self) -> Iterator[ArraySlot]:
        """Yield the slots of the variables that the code names, or that the cell has changed."""
        for name, value in list(self._namespace.items()):
            if name in self._names or self._before.get(name) is not value:
                yield ArraySlot(value, self._namespace, name, ITEM)

    def __call__(self) -> dict[str, Any]:
        """Run the code; the namespace then has the variables as a run without recording would."""
        try:
            exec(self._watched, self._namespace)
        finally:
            functions: list[FunctionType] = []
            for _ in slots(self, functions=functions):
                pass
            restore_code(functions, self._own, self._watched)
            self.value = self._namespace.pop(_VALUE, None)
        result = {
            slot.key: slot.value
            for slot in self.slots()
            if is_result(slot.value) and slot.key[:1] != "_"
        }
        if is_result(self.value) and not any(value is self.value for value in result.values()):
            result[self.value_name] = self.value
        return result


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
    values = [x for x in result_leaves(own, None, recorder) if isinstance(x, _RECORDED)]
    results = [x for x in values if is_computed(recorder, x)]
    if results or recorder.leaving.rounds:
        return results
    return values or list(result_leaves(variables, None, recorder))


def variables_at(error: BaseException) -> dict[str, Any]:
    """Return the variables of a program where an error left it, and the attributes of its objects.

    The variables of a function that was called hide those of its callers.
    """
    found: dict[str, Any] = {}
    for frame, _ in walk_tb(error.__traceback__):
        if not (frame.f_code.co_filename.startswith(INSTALLED) or is_internal(frame)):
            own = {name: x for name, x in frame.f_locals.items() if name[:2] != "__"}
            for name, value in own.items():
                parts = getattr(value, "__dict__", {}) if is_result(value) else {}
                found |= {f"{name}.{key}": part for key, part in parts.items()}
            found |= own
    return {name: x for name, x in found.items() if is_result(x)}


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
