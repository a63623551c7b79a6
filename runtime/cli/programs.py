"""Programs on the command line: a graph in a file, or an object in a Python script."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from graphir.numpy_api.trace import Trace
from graphir.public import ExecutionError, Graph
from graphir.runtime.recording.flat_code import Script

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
            names = ", ".join(sorted(name for name in dir(value) if name[0] != "_"))
            raise ExecutionError(f"{path} defines no {part!r}; it has {names or 'nothing'}")
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


def _module(path: str) -> Any:
    """Import a script as a module; it can import the modules in its own directory.

    A file of a package is imported as its module, so that its relative imports work.
    """
    file = require_file(path)
    folder, name = file.parent, file.stem
    while (folder / "__init__.py").is_file():
        folder, name = folder.parent, f"{folder.name}.{name}"
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
