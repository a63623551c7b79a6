"""What a command names: a program, the values of its inputs, and the graph of the two.

A program is a graph in a file, a model, or an object in a Python script. The option `--input` of
commands that run a program takes inputs in order or by name.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from traceback import format_exception
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

from graphir.import_names import optional
from graphir.numpy_api.trace import Trace
from graphir.ops.grammar import read_type
from graphir.promotion.scalars import number
from graphir.public import ExecutionError, Graph, GraphError, PromotionRules, TensorType
from graphir.runtime.binding import match_inputs
from graphir.runtime.cli.main import one_colon
from graphir.runtime.recording.flat_code import Script
from graphir.runtime.recording.sites import is_call_site
from graphir.runtime.sources import from_onnx
from graphir.runtime.sources.libraries import Library, library_of
from graphir.runtime.sources.onnx_.model import input_names, read_model
from graphir.runtime.sources.op_rows import identifier
from graphir.runtime.sources.programs import ImportedProgram, import_program, module_instance
from graphir.runtime.sources.torch_.tensors import tensor_of
from graphir.runtime.trial_process import ProgramName
from graphir.runtime.user_code import INSTALLED, PROJECT
from graphir.runtime.value_files import read_input

Program: TypeAlias = "Graph | Callable[..., Any]"


def load_program(
    text: str, sources: str | None = None, arguments: Sequence[str] | None = None
) -> Program:
    """Return the graph in `net.gir`, or the object that `script.py:name` names.

    `package.module:name` imports a module from the current directory. A result of `trace` counts
    as its Graph. A script runs as an import would run it; with `arguments`, `script.py` alone is a
    Script with these arguments. If `sources` is given, source files that `net.gir` names are
    readable inside that directory only. Raises ExecutionError, with the expected form, for any
    other text and for files of pickles.
    """
    value = find_object(text)
    if value is None:
        return _read_file(text, sources, arguments)
    if isinstance(value, Trace):
        value = value.graph
    if not isinstance(value, Graph) and not callable(value) and not _is_exported(value):
        raise ExecutionError(f"{text} is neither a Graph nor a function", got=type(value).__name__)
    return value


def _is_exported(value: Any) -> bool:
    """Whether a value is a torch.export.ExportedProgram, which is not callable."""
    return type(value).__name__ == "ExportedProgram"


def _read_file(text: str, sources: str | None, arguments: Sequence[str] | None) -> Program:
    """Return the graph in a file, or the Script of a file of Python."""
    suffix = Path(text).suffix.lower()
    if suffix in PICKLES:
        raise ExecutionError(
            f"{text}: torch reads {suffix} files by pickle, which runs any code that they hold",
            fix="load the file in a script, and name the object: model.py:program",
        )
    if "::" in text:
        fix = f"type {one_colon(text)}"
        raise ExecutionError(f"{text}: one colon stands before a name", fix=fix)
    if suffix == ".ipynb":
        raise ExecutionError(
            f"{text}: graphir looks at the cells of a notebook inside of it",
            fix="write %load_ext graphir, and %%annotate, %%casts or %%audit at the top of a cell; "
            f"or look at {Path(text).stem}.py, which jupyter nbconvert --to script makes of it",
        )
    if suffix != ".py":
        return Graph.load(text, sources=sources)
    if arguments is None:
        raise ExecutionError(f"{text}: name what it defines, as in {text}:function")
    require_file(text)
    return Script(text, arguments)


def is_model(text: str) -> bool:
    """Whether a text is the path of an ONNX model; ExecutionError if there is no such file."""
    if Path(text).suffix.lower() != ".onnx":
        return False
    require_file(text)
    return True


def find_object(text: str) -> Any:
    """Return the object that `script.py:name` or `package.module:name` names; None for a file."""
    path, _, name = text.rpartition(":")
    is_script = path.endswith(".py")
    is_module = not is_script and all(map(str.isidentifier, path.split(".")))
    if not (is_script or is_module) or Path(text).is_file():
        return None
    value: Any = _imported(path) if is_module else _module(path)
    for part in name.split("."):
        if not hasattr(value, part):
            names = sorted(name for name in dir(value) if name[0] != "_")
            near = [f"use {text.removesuffix(part)}{x}" for x in get_close_matches(part, names)]
            has = "" if near else f"; it has {', '.join(names) or 'nothing'}"
            raise ExecutionError(f"{path} defines no {part!r}{has}", fix=near)
        value = getattr(value, part)
    return value


def file_of(text: str) -> str:
    """Return the path of the file that a command names: a graph's, a script's or a module's."""
    path, _, name = text.rpartition(":")
    if not name or Path(text).is_file():
        return text
    return path if path.endswith(".py") else getattr(sys.modules.get(path), "__file__", None) or ""


PICKLES = (".pt2", ".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle")
"""The endings of files of programs or weights that are read by pickle."""


def require_arguments(
    text: str,
    function: Callable[..., Any],
    positional: Sequence[Any],
    keywords: Mapping[str, Any],
    advice: str,
) -> None:
    """Raise ExecutionError, with the function's signature, unless it accepts the arguments."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function))
    except (TypeError, ValueError):  # compiled functions may lack a signature
        return
    try:
        parameters.bind(*positional, **keywords)
    except TypeError as error:
        raise ExecutionError(f"{text}{parameters}: {error}; {advice}") from None


def require_object(text: str, positional: Sequence[Any]) -> None:
    """Raise ExecutionError for `script.py:Class.method`, whose form that works it names.

    The first argument may be an object of the class.
    """
    head, _, name = text.rpartition(".")
    path, colon, _ = head.rpartition(":")
    owner = find_object(head) if colon else None
    method = inspect.getattr_static(owner, name, None) if isinstance(owner, type) else None
    is_given = bool(positional) and isinstance(owner, type) and isinstance(positional[0], owner)
    if owner is None or is_given or not hasattr(method, "__get__"):
        return
    if isinstance(method, (staticmethod, classmethod)):
        return
    module = find_object(f"{path}:__dict__")
    objects = [key for key, value in module.items() if isinstance(value, owner)]
    fix = (
        f"name one: {path}:{objects[0]}.{name}"
        if objects
        else (
            f"write `{owner.__name__.lower()} = {owner.__name__}(...)` into the file, and name "
            f"{path}:{owner.__name__.lower()}.{name}"
        )
    )
    raise ExecutionError(f"{text} is a method of the objects of a class", fix=fix)


def _module(path: str) -> Any:
    """Import a script as a module; it can import the modules in its own directory.

    A file of a package is imported as its module, so that its relative imports work.
    """
    file = require_file(path)
    folder, name = _package_of(file)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if "." in name:
        return importlib.import_module(name.removesuffix(".__init__"))
    loaded = sys.modules.get(name)
    if getattr(loaded, "__file__", None) == str(file):
        return loaded
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None  # the caller checked the suffix .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _package_of(file: Path) -> tuple[Path, str]:
    """Return the folder from which a file is imported, and the full name of its module."""
    folder, name = file.parent, file.stem
    while (folder / "__init__.py").is_file():
        folder, name = folder.parent, f"{folder.name}.{name}"
    return folder, name


def program_name(text: str) -> ProgramName:
    """Return the name by which another process finds what a command names in a script or module."""
    path, _, name = text.rpartition(":")
    if text.endswith(".py"):
        return ProgramName("__main__", str(require_file(text)), "")
    if not path.endswith(".py"):
        return ProgramName(path, "", name)
    file = require_file(path)
    return ProgramName(_package_of(file)[1], str(file), name)


def _imported(name: str) -> Any:
    """Import a module by its path, from the current directory first."""
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module imports another one that is missing
        fix = "name a module that can be imported from here, as in package.module:function"
        raise ExecutionError(f"no module {name!r}", got=f"missing {error.name}", fix=fix) from None


def require_file(path: str) -> Path:
    """Return the absolute path of a file; ExecutionError if there is none."""
    file = Path(path).resolve()
    if not file.is_file():
        raise ExecutionError(f"{path}: no such file")
    return file


# -- the inputs of a program


def of_model(
    file: str, inputs: Sequence[str], sizes: Sequence[tuple[str, int]]
) -> tuple[Graph, list[str]]:
    """Return the graph of an ONNX model, and the inputs that are no types.

    A type among the inputs, by name or in order, states the sizes of an input of the model.
    """
    model = read_model(file)
    positional, by_name = _split_by_name(inputs)
    names = [identifier(name) for name in input_names(model)]
    values = positional[len(names) :]  # too many, which the run refuses
    types: dict[str, TensorType] = {}
    for name, text in [*zip(names, positional, strict=False), *by_name.items()]:
        type_ = _type(text)
        if type_ is None:
            values.append(f"{name}={text}")
        else:
            types[name] = type_
    return from_onnx(model, **dict(sizes), **types), values


def of_graph(graph: Graph, inputs: Sequence[str], draws: Draws | None = None) -> list[Any]:
    """Return the values of a graph's inputs, in its order; `draws` gives those of types.

    Raises ExecutionError that names the missing or invalid input.
    """
    positional, by_name = _split_by_name(inputs)
    names = graph.input_names[len(positional) :]
    missing = [name for name in names if name not in by_name and name not in graph.defaults]
    if missing and by_name.keys() <= set(graph.input_names):
        pairs = zip(graph.input_names, graph.inputs, strict=True)
        takes = ", ".join(f"{name}: {symbol.type}" for name, symbol in pairs)
        raise ExecutionError(
            f"graph {graph.name!r} is missing {', '.join(missing)}; it takes ({takes})",
            fix="add " + " ".join(f"--input {name}={name}.npy" for name in missing),
        )
    texts = match_inputs(graph, positional, by_name)
    dtypes = [graph.concrete_dtype(symbol.dtype) for symbol in graph.inputs]
    values: list[Any] = []
    for text, dtype, name in zip(texts, dtypes, graph.input_names, strict=True):
        type_ = _type(text) if isinstance(text, str) and draws is not None else None
        if type_ is not None and draws is not None:
            values.append(draws.value(type_, name))
        else:
            values.append(read_input(text, dtype) if isinstance(text, str) else text)  # a default
    return values


def of_function(
    inputs: Sequence[str], find: Callable[[str], Any] = find_object
) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of a function's arguments, by position and by name.

    `config.scale=2.0` is an entry of a dict for the argument `config`. `find` returns the object
    that a name means.
    """
    positional, texts = _split_by_name(inputs)
    keywords: dict[str, Any] = {}
    for name, text in texts.items():
        *path, last = name.split(".")
        values = keywords
        for key in path:
            values = values.setdefault(key, {})
        if not isinstance(values, dict) or last in values:
            raise ExecutionError(f"--input {name}=... has a value and entries of a dict")
        values[last] = _argument(text, find)
    return [_argument(text, find) for text in positional], keywords


def _type(text: str) -> TensorType | None:
    """Return the type that a text means; None for other texts, and for the path of a file."""
    if re.fullmatch(r"\w+\[[^\[\]]*\]", text) and not Path(text).exists():
        return read_type(text)
    return None


def _argument(text: str, find: Callable[[str], Any]) -> Any:
    """Return the value that a text means.

    That is an array, a type, a number, an object of a script, or a literal.
    """
    type_ = _type(text)
    if type_ is not None:
        return type_
    if ".py:" in text:
        return find(text)
    if text.endswith((".npy", ".npz")) or ".npz:" in text:
        return read_input(text)
    value = number(text)
    if value is not None:
        return value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ExecutionError(
            f"{text!r} is neither a number nor a file",
            fix="give x.npy, file.npz:key, a number, a type such as 'float32[8, 3]', or "
            f'a Python literal: --input "{text!r}" is a text',
        ) from None


def _split_by_name(inputs: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    positional: list[str] = []
    keywords: dict[str, str] = {}
    for text in inputs:
        name, equals, value = text.partition("=")
        if not (equals and all(map(str.isidentifier, name.split(".")))):
            positional.append(text)
        elif name in keywords:
            raise ExecutionError(f"--input {name}=... is given twice")
        else:
            keywords[name] = value
    return positional, keywords


Call = TypeVar("Call", bound=Any)  # a ProgramCall

HIGH = 100
"""The integers that a command draws are less."""


class Draws:
    """The values drawn for types among the inputs of a command, and the note about them.

    Floats and the parts of complex numbers are standard normal; integers are uniform from 0 on,
    less than HIGH, so that they are indices of most arrays.
    """

    def __init__(self, seed: int) -> None:
        self._seed, self._generator = seed, np.random.default_rng(seed)
        self._drawn: list[str] = []

    @property
    def notes(self) -> list[str]:
        """What was drawn, in one line; none if nothing was."""
        drawn = ", ".join(self._drawn)
        return [f"drawn values, seed {self._seed}: {drawn}"] if drawn else []

    def value(self, type_: TensorType, name: str) -> Any:
        """Return an array of a type for the input of a name; ExecutionError for named sizes."""
        if not all(isinstance(size, int) for size in type_.shape):
            raise ExecutionError(
                f"the values of input {name} are drawn, and its type has a named size",
                got=str(type_),
                fix=f"write sizes, as in {type_.dtype}{[8] * type_.rank}",
            )
        shape = cast("tuple[int, ...]", type_.shape)
        dtype, how = type_.dtype, "standard normal"
        normal = self._generator.standard_normal
        if dtype.is_complex:
            array: Any = normal(shape) + 1j * normal(shape)
        elif dtype.is_inexact:
            array = normal(shape)
        else:
            high = 2 if dtype.family == "bool" else int(min(HIGH, dtype.max + 1))
            array, how = self._generator.integers(high, size=shape), f"integers less than {high}"
        self._drawn.append(f"{name} {type_} ({how})")
        return np.asarray(array).astype(dtype.storage)

    def call(self, call: Call) -> Call:
        """Return the call of a function with values in place of the types among its arguments."""
        function, positional = call.function, call.positional
        try:
            names = list(inspect.signature(getattr(function, "forward", function)).parameters)
        except (TypeError, ValueError):  # compiled functions may lack a signature
            names = []
        names += [f"number {place}" for place in range(len(names) + 1, len(positional) + 1)]
        return call._replace(
            positional=[self._fill(value, names[place]) for place, value in enumerate(positional)],
            keywords={name: self._fill(value, name) for name, value in call.keywords.items()},
        )

    def _fill(self, value: Any, name: str) -> Any:
        if isinstance(value, TensorType):
            return self.value(value, name)
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {key: self._fill(each, f"{name}.{key}") for key, each in items}
        return value


# -- the graph of a program, and the values of its inputs

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


def own_arrays(call: ProgramCall) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call, with arrays of its library in place of NumPy's."""
    arguments = call.positional, call.keywords
    if call.library == "numpy":
        return arguments
    library = optional(call.library, call.library, f"a program of {call.library}")

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, (np.ndarray, np.generic)):
            return leaf
        return library.numpy.asarray(leaf) if call.library == "jax" else tensor_of(library, leaf)

    tree_map = library.tree.map if call.library == "jax" else library.utils._pytree.tree_map
    return tree_map(own, arguments)


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
    require_object(args.program, positional)
    if isinstance(program, Script):
        advice = "give the arguments of a script after --"
        require_arguments(args.program, program, positional, keywords, advice)
        return program
    library = args.library or library_of(program, (*positional, *keywords.values()))
    if library == "torch" and isinstance(program, type):
        program = module_instance(program)
    if not args.inputs and library != "numpy":
        graph = _built(args.program, program, library, args.rules)
        if graph is not None:
            return following(args.rules, graph)
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
    return _import_named(program, args).graph


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
    imported = _import_named(program or load_call(args), args, needs_values, draws)
    if draws is not None:
        imported.graph.describe(notes=[*imported.graph.notes, *draws.notes])
    if any(value is None for value in imported.values):
        raise ExecutionError(
            f"{args.program} runs on values, and an input has a type alone",
            fix="give each by --input x.npy, file.npz:key or a number",
        )
    return imported


@_printing_apart
def _import_named(
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
    if not args.inputs and library == "numpy":
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


# -- the error of a program


def user_traceback(error: BaseException) -> str | None:
    """Return the traceback of an error of the user's program, without graphir's frames.

    The frames start at the user's first one; the error and its causes keep these alone. Returns
    None if no frame is of the user.
    """
    chain: list[BaseException] = [error]
    for each in chain:
        chain += [x for x in (each.__cause__, each.__context__) if x is not None and x not in chain]
        each.__traceback__ = user_frames(each.__traceback__)
    if error.__traceback__ is None and not isinstance(error, SyntaxError):
        return None
    return "".join(format_exception(error)).rstrip()


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the frames of a traceback from the user's first one on, without graphir's."""
    frames: list[TracebackType] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        is_user = not code.co_filename.startswith(INSTALLED)
        if (is_user or frames) and not code.co_filename.startswith((*PROJECT, "<frozen")):
            frames += [] if is_call_site(code) else [traceback]
        traceback = traceback.tb_next
    for frame in reversed(frames):
        traceback = TracebackType(traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return traceback
