"""Notebook cells that are recorded: code that runs in the notebook's variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from graphir.runtime.recording.blocks import is_result
from graphir.runtime.recording.captured import ITEM, ArraySlot, SlotOwner, names_of, slots
from graphir.runtime.recording.numpy_.watched_code import restore_code, watched_code

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
