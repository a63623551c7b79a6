"""Modules loaded from files: the examples, and programs that a test writes."""

from __future__ import annotations

import importlib.util
import linecache
from functools import cache
from pathlib import Path
from types import ModuleType

from tests import ROOT

EXAMPLES = ROOT / "examples"


@cache
def example(name: str) -> ModuleType:
    """An example, loaded once."""
    return loaded(EXAMPLES / f"{name}.py", f"example_{name}")


def written(path: Path, text: str) -> ModuleType:
    """A program written to a path and run."""
    path.write_text(text, encoding="utf-8")
    linecache.checkcache(str(path))
    return loaded(path, path.stem)


def loaded(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
