"""The array library of a Python program: by its class, by the names that it uses, by its arguments.

A jitted function, a module or an array says by its class which library it is of. A plain function
says it by the globals, closure variables and imports that its code reads, and by those of the
functions and classes of the user among them.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, TypeAlias, cast, get_args

from graphir.public import GraphError
from graphir.runtime.user_code import INSTALLED

Library: TypeAlias = Literal["jax", "torch", "numpy"]
LIBRARIES: tuple[Library, ...] = get_args(Library)

_PACKAGES: dict[str, Library] = {
    **dict.fromkeys(("jax", "jaxlib", "flax", "equinox", "haiku", "optax", "chex"), "jax"),
    **dict.fromkeys(("torch", "torchvision", "torchaudio"), "torch"),
    "numpy": "numpy",
}
"""The packages whose functions, classes and objects show the library of a program."""


def library_of(program: Callable[..., Any], arguments: Iterable[Any] = ()) -> Library:
    """Return the library of a program that is called with these arguments.

    Programs of JAX and torch use NumPy too. Raises GraphError if the program and its arguments are
    of JAX and torch alike, or if neither says it and the module of the program imports several.
    """
    evidence = _Evidence()
    evidence.add(program)
    uses_numpy = "numpy" in evidence.libraries
    for value in arguments:
        evidence.add(value)
    others = evidence.libraries - {"numpy"}
    if not others and not uses_numpy:
        function = inspect.unwrap(program) if callable(program) else program
        imports = _Evidence()
        for value in getattr(function, "__globals__", {}).values():
            if isinstance(value, ModuleType):
                imports.add(value)
        several = imports.libraries if len(imports.libraries) > 1 else set[Library]()
        others = several or imports.libraries - {"numpy"}
    if not others:
        return "numpy"
    if len(others) == 1:
        return others.pop()
    name = getattr(program, "__qualname__", type(program).__name__)
    raise GraphError(
        f"{name} may be a program of {' or '.join(sorted(others))}",
        fix=f"name the library, as in --library {min(others)}",
    )


def library_of_script(source: bytes) -> Library:
    """Return the library as whose program a script is recorded: torch if it imports it.

    What a script computes by JAX is outside of its recording.
    """
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [x.name for x in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    libraries = {_PACKAGES.get(name.partition(".")[0]) for name in names}
    return "torch" if "torch" in libraries else "numpy"


class _Evidence:
    """The libraries that values show, and the code that was read for it."""

    def __init__(self) -> None:
        self.libraries: set[Library] = set()
        self._visited: set[int] = set()
        self._classes: set[type] = set()
        self._objects: list[Any] = []  # so that no id is given to another object

    def add(self, value: Any) -> None:
        """Add the libraries that a value shows."""
        if id(value) in self._visited:
            return
        self._visited.add(id(value))
        self._objects.append(value)
        if isinstance(value, ModuleType):
            self._add_package(value.__name__)
            if not (getattr(value, "__file__", None) or "<frozen").startswith(INSTALLED):
                for each in vars(value).values():
                    self._add_package(each.__name__ if isinstance(each, ModuleType) else "")
        elif isinstance(value, partial):
            parts = cast("partial[Any]", value)
            self._add_all((parts.func, *parts.args, *parts.keywords.values()))
        elif isinstance(value, MethodType):
            self._add_all((value.__self__, value.__func__))
        elif isinstance(value, FunctionType):
            self._add_function(value)
        elif isinstance(value, Mapping):
            self._add_all(cast("Mapping[Any, Any]", value).values())
        elif isinstance(value, (list, tuple, set)):
            self._add_all(cast("Iterable[Any]", value))
            self._add_class(value)
        else:
            self._add_class(value)
            self._add_package(getattr(value, "__module__", None) or "")
            self.add(getattr(value, "__wrapped__", None))

    def _add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def _add_package(self, module: object) -> None:
        library = _PACKAGES.get(str(module).partition(".")[0])
        if library is not None:
            self.libraries.add(library)

    def _add_class(self, value: Any) -> None:
        """Add the libraries of the bases of a class, or of an object's class, and of its methods.

        The methods are those that the user wrote.
        """
        class_: Any = value if isinstance(value, type) else type(value)
        if class_ in self._classes:
            return
        self._classes.add(class_)
        bases: tuple[type, ...] = class_.__mro__
        for base in bases:
            self._add_package(base.__module__)
            for method in vars(base).values():
                if isinstance(method, FunctionType) and _is_of_user(method.__code__):
                    self.add(method)

    def _add_function(self, function: FunctionType) -> None:
        """Add the libraries of the names that a function of the user reads, or of its package."""
        self._add_package(function.__globals__.get("__name__"))
        self.add(getattr(function, "__wrapped__", None))
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # of an empty cell
                self.add(cell.cell_contents)
        if _is_of_user(function.__code__):
            for name, is_import in _names(function.__code__):
                if is_import:
                    self._add_package(name)
                else:
                    self.add(function.__globals__.get(name))


def _is_of_user(code: CodeType) -> bool:
    return not code.co_filename.startswith(INSTALLED)


def _names(code: CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the globals that code reads and the modules that it imports, with whether it does."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME"):
            yield instruction.argval, instruction.opname == "IMPORT_NAME"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
