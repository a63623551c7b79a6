"""The names of ml_dtypes, hidden from tests whose package does not import it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

_PACKAGE = "ml_dtypes"


class HiddenDtypes(MetaPathFinder, Loader):
    """Hides the module ml_dtypes and its names until something imports it, or `show` is called.

    graphir imports ml_dtypes, and `np.dtype("bfloat16")` then has a meaning. The tests of a package
    that does not import ml_dtypes run without it.
    """

    def __init__(self) -> None:
        self._names: dict[Any, Any] = {}
        self._modules: dict[str, ModuleType] = {}

    def hide(self) -> None:
        """Hide what the import of ml_dtypes has added."""
        modules = {x: sys.modules[x] for x in sys.modules if x.partition(".")[0] == _PACKAGE}
        table: Any = np.sctypeDict
        names = {x: kind for x, kind in table.items() if kind.__module__ == _PACKAGE}
        self._modules, self._names = modules, names
        for name in modules:
            del sys.modules[name]
        for name in names:
            del table[name]
        sys.meta_path.insert(0, self)

    def show(self) -> None:
        """Add all of it again."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        sys.modules.update(self._modules)
        table: Any = np.sctypeDict
        table.update(self._names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Show what is hidden if a test imports it after all."""
        if fullname != _PACKAGE:
            return None
        self.show()
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is."""
