"""Programs on the command line: a graph in a file, or an object in a Python script."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from graphir import ExecutionError, Graph, GraphError, PromotionRules
from graphir.numpy_api.trace import Trace

Program: TypeAlias = "Graph | Callable[..., Any]"


def load_program(
    text: str, sources: str | None = None, rules: PromotionRules | None = None
) -> Program:
    """Return the graph in `net.gir`, or the graph or function that `script.py:name` names.

    A result of `trace` counts as its Graph. The function runs the script as an import would. If
    `sources` is given, source files that `net.gir` names are readable inside that directory only.
    Raises ExecutionError, with the expected form, for any other text, and GraphError if the graph
    follows other rules than `rules`.
    """
    path, colon, name = text.rpartition(":")
    if not (colon and path.endswith(".py")):
        if text.endswith(".py"):
            raise ExecutionError(f"{text}: name what it defines, as in {text}:function")
        return _following(rules, Graph.load(text, sources=sources))
    value: Any = _module(path)
    for part in name.split("."):
        if not hasattr(value, part):
            names = ", ".join(sorted(name for name in dir(value) if name[0] != "_"))
            raise ExecutionError(f"{path} defines no {part!r}; it has {names or 'nothing'}")
        value = getattr(value, part)
    if isinstance(value, Trace):
        value = value.graph
    if isinstance(value, Graph):
        return _following(rules, value)
    if not callable(value):
        raise ExecutionError(f"{text} is neither a Graph nor a function", got=type(value).__name__)
    return value


def _following(rules: PromotionRules | None, graph: Graph) -> Graph:
    """Return a graph that follows the rules, if any are given."""
    if rules is None or rules.name in (graph.rules.name, graph.rules_before):
        return graph
    raise GraphError(
        f"graph {graph.name!r} follows the rules {graph.rules_before or graph.rules.name!r}",
        got=f"--rules {rules.name}",
        fix=f"compare by --against {rules.name}, or graphir diff GRAPH {rules.name}",
    )


def load_graph(text: str, sources: str | None = None, rules: PromotionRules | None = None) -> Graph:
    """Return the graph in `net.gir`, a script's graph, or the graph that its function returns."""
    program = load_program(text, sources, rules)
    if isinstance(program, Graph):
        return program
    advice = (
        f"name a function without arguments that returns a graph, or see what a function does to "
        f"arrays by: graphir audit {text} --input x.npy"
    )
    require_arguments(text, program, (), {}, advice)
    with rules or nullcontext():  # the default of a graph that names none
        result = program()
    if isinstance(result, Trace):
        result = result.graph
    if isinstance(result, Graph):
        return _following(rules, result)
    raise ExecutionError(f"{text}() returned {type(result).__name__}, not a Graph; {advice}")


def require_arguments(
    text: str,
    function: Callable[..., Any],
    positional: Sequence[Any],
    keywords: Mapping[str, Any],
    advice: str,
) -> None:
    """Raise ExecutionError, with the function's signature, unless it accepts the arguments."""
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):  # compiled functions may lack a signature
        return
    try:
        parameters.bind(*positional, **keywords)
    except TypeError as error:
        raise ExecutionError(f"{text}{parameters}: {error}; {advice}") from None


def _module(path: str) -> Any:
    """Import a script as a module; it can import the modules in its own directory."""
    file = Path(path).resolve()
    if not file.is_file():
        raise ExecutionError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None  # the caller checked the suffix .py
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
