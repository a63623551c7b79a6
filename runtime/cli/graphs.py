"""The graph of a command, from whatever its argument names, and the values of its inputs."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from graphir.numpy_api.trace import Trace
from graphir.public import ExecutionError, Graph, GraphError, PromotionRules
from graphir.runtime.cli.inputs import Draws, of_function, of_graph, of_model
from graphir.runtime.cli.programs import is_model, load_program, require_arguments
from graphir.runtime.recording.flat_code import Script
from graphir.runtime.sources.libraries import Library, library_of
from graphir.runtime.sources.programs import ImportedProgram, import_program, module_instance

P = ParamSpec("P")
R = TypeVar("R")

BY_INPUT = "give each by --input VALUE, in order, or --input NAME=VALUE"
"""The advice for arguments that are missing."""


class ProgramCall(NamedTuple):
    """A function of a library that a command names, with the arguments of --input."""

    function: Any
    library: Library
    positional: list[Any]
    keywords: dict[str, Any]


def _printing_apart(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: send to stderr what the user's program prints; stdout has the command's output."""

    @wraps(function)
    def run(*args: P.args, **keywords: P.kwargs) -> R:
        with redirect_stdout(sys.stderr):
            return function(*args, **keywords)

    return run


@_printing_apart
def load_call(args: argparse.Namespace, draws: Draws | None = None) -> Graph | Script | ProgramCall:
    """Return the graph or the script that a command names, or the call of its function.

    With `draws`, the types of a model's inputs stay inputs, of which the command draws values.
    """
    if is_model(args.program):
        program, inputs = of_model(args.program, args.inputs, args.sizes)
        args.inputs = inputs if draws is None else args.inputs
        return following(args.rules, program)
    program = load_program(args.program, args.sources, args.arguments)
    if isinstance(program, Graph):
        return following(args.rules, program)
    positional, keywords = of_function(args.inputs)
    if isinstance(program, Script):
        advice = "give the arguments of a script after --"
        require_arguments(args.program, program, positional, keywords, advice)
        return program
    library = args.library or library_of(program, (*positional, *keywords.values()))
    if library == "torch" and isinstance(program, type):
        program = module_instance(program)
    return ProgramCall(program, library, positional, keywords)


def load_graph(
    args: argparse.Namespace, program: Graph | Script | ProgramCall | None = None
) -> Graph:
    """Return the graph of a command that runs nothing: its inputs may be types alone.

    `program` is what the command names, if it is loaded already.
    """
    program = program or load_call(args)
    if isinstance(program, Graph) and args.inputs:
        raise ExecutionError(
            f"{args.program} is a graph, whose inputs have types",
            got=f"--input {args.inputs[0]}",
            fix="leave --input out",
        )
    return _imported(program, args).graph


def load_run(
    args: argparse.Namespace,
    program: Graph | ProgramCall | None = None,
    needs_values: bool = True,
    draws: Draws | None = None,
) -> ImportedProgram:
    """Return the graph of a command that runs it, and the values of the graph's inputs.

    `program` is what the command names, if it is loaded already. A graph that the command does not
    run may have no values, unless it `needs_values`. Raises ExecutionError for an input
    that has a type alone, unless `draws` gives its values.
    """
    imported = _imported(program or load_call(args), args, needs_values, draws)
    if draws is not None:
        imported.graph.describe(notes=[*imported.graph.notes, *draws.notes])
    if any(value is None for value in imported.values):
        raise ExecutionError(
            f"{args.program} runs on values, and an input has a type alone",
            fix="give each by --input x.npy, file.npz:key or a number",
        )
    return imported


@_printing_apart
def _imported(
    program: Graph | Script | ProgramCall,
    args: argparse.Namespace,
    needs_values: bool = False,
    draws: Draws | None = None,
) -> ImportedProgram:
    if isinstance(program, Graph):
        return ImportedProgram(
            program, of_graph(program, args.inputs, draws) if args.inputs or needs_values else []
        )
    if isinstance(program, Script):
        raise ExecutionError(f"{args.program}: name what it defines, as in {args.program}:function")
    function, library, positional, keywords = program
    if not args.inputs:
        result = _built(args.program, function, library, args.rules)
        if result is not None:
            return ImportedProgram(following(args.rules, result), [])
    require_arguments(args.program, function, positional, keywords, BY_INPUT)
    if draws is not None:
        _, _, positional, keywords = draws.call(program)
    imported = import_program(function, library, positional, keywords, args.rules)
    following(args.rules, imported.graph)
    return imported


def _built(text: str, function: Any, library: Library, rules: PromotionRules | None) -> Any:
    """Return the graph that a function without arguments returns; None for another program."""
    is_function = inspect.isroutine(inspect.unwrap(function)) if callable(function) else False
    advice = (
        "name a function without arguments that returns a graph, or give the arguments of a "
        f"program by --input: graphir audit {text} --input x.npy"
    )
    if not is_function and library != "numpy":
        return None
    if library == "numpy":
        require_arguments(text, function, (), {}, advice)
    else:
        try:
            inspect.signature(function).bind()
        except TypeError:
            return None
    with rules or nullcontext():  # the default of a graph that names none
        result = function()
    result = result.graph if isinstance(result, Trace) else result
    if isinstance(result, Graph):
        return result
    if library != "numpy":
        return None
    raise ExecutionError(f"{text}() returned {type(result).__name__}, not a Graph; {advice}")


def following(rules: PromotionRules | None, graph: Graph) -> Graph:
    """Return a graph that follows the rules, if any are given."""
    if rules is None or rules.name in (graph.rules.name, graph.rules_before):
        return graph
    raise GraphError(
        f"graph {graph.name!r} follows the rules {graph.rules_before or graph.rules.name!r}",
        got=f"--rules {rules.name}",
        fix=f"compare by --against {rules.name}, or graphir diff GRAPH {rules.name}",
    )
