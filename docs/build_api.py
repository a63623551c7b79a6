"""Writes the API reference from the docstrings.

    python docs/build_api.py [FOLDER]

It needs pdoc, of the extra `docs`. Without a folder it writes to docs/api.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import graphir
from graphir import ops, passes, runtime
from graphir.runtime import array_api, targets

PUBLIC: list[ModuleType] = [graphir, ops, passes, runtime, array_api, targets]


def op_function(op: Any) -> Any:
    """A function that has the signature and the help of an op: pdoc shows objects as data."""

    def function() -> None: ...

    function.__name__ = function.__qualname__ = op.name
    function.__module__ = ops.__name__
    plain = re.sub(r"([*_<>])", r"\\\1", inspect.getdoc(op) or "")
    function.__doc__ = plain.replace("\n", "\n\n")
    vars(function)["__signature__"] = inspect.signature(op)
    return function


def build(folder: Path) -> None:
    """Write a page for each public module."""
    import pdoc

    for module in PUBLIC:
        if not hasattr(module, "__all__"):
            vars(module)["__all__"] = dir(module)
    for name in dir(ops):
        if isinstance(value := getattr(ops, name), graphir.Op):
            setattr(ops, name, op_function(value))
    names = [module.__name__ for module in PUBLIC]
    others = rf"!(?!({'|'.join(map(re.escape, names))})$)"  # modules that share a public name
    pdoc.render.configure(show_source=False)
    # Names that are imported for type checkers alone are printed as they are written.
    warnings.filterwarnings("ignore", "Error parsing type annotation", UserWarning)
    pdoc.pdoc(*names, others, output_directory=folder)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "api"
    build(target)
    print(f"wrote {target / 'index.html'}")
