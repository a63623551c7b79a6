"""A program named on the command line: a graph in a file, or something in a Python script."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from graphir import ExecutionError, Graph
from graphir.numpy_api.trace import Traced

Program: TypeAlias = "Graph | Callable[..., Any]"


def load_program(text: str, sources: str | None = None) -> Program:
    """What `net.gir` holds, or what `script.py:name` defines: a Graph, or a function.

    What `trace` gives is the Graph in it. The script is run, as importing it would run it. Of the
    source files that `net.gir` names those inside the directory `sources` may be read. Raises
    ExecutionError that says what to give.
    """
    path, colon, name = text.rpartition(":")
    if not (colon and path.endswith(".py")):
        if text.endswith(".py"):
            raise ExecutionError(f"{text}: name what it defines, as in {text}:function")
        return Graph.load(text, sources=sources)
    found: Any = _module(path)
    for part in name.split("."):
        if not hasattr(found, part):
            known = ", ".join(sorted(name for name in dir(found) if name[0] != "_"))
            raise ExecutionError(f"{path} defines no {part!r}; it has {known or 'nothing'}")
        found = getattr(found, part)
    if isinstance(found, Traced):
        return found.graph
    if not (isinstance(found, Graph) or callable(found)):
        raise ExecutionError(f"{text} is {found!r}, which is neither a Graph nor a function")
    return found


def load_graph(text: str, sources: str | None = None) -> Graph:
    """The graph that `net.gir` holds, that a script defines, or that a function in it returns."""
    found = load_program(text, sources)
    if isinstance(found, Graph):
        return found
    advice = (
        "trace(function, types...) in the script makes a graph of a function on arrays, and "
        f"what it does to arrays tells: graphir audit {text} --input x.npy"
    )
    require_arguments(text, found, (), {}, advice)
    made = found()
    if isinstance(made, Traced):
        return made.graph
    if isinstance(made, Graph):
        return made
    raise ExecutionError(f"{text}() returned {type(made).__name__}, not a Graph; {advice}")


def require_arguments(
    text: str,
    function: Callable[..., Any],
    positional: Sequence[Any],
    named: Mapping[str, Any],
    advice: str,
) -> None:
    """ExecutionError with the parameters of a function that cannot be called on these arguments."""
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):  # of what is compiled nothing is known
        return
    try:
        parameters.bind(*positional, **named)
    except TypeError as error:
        raise ExecutionError(f"{text}{parameters}: {error}; {advice}") from None


def _module(path: str) -> Any:
    """A script as a module, which finds what lies beside it."""
    file = Path(path).resolve()
    if not file.is_file():
        raise ExecutionError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None  # by its suffix it is Python
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
