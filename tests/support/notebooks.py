"""A stand-in for IPython's shell, which runs cells and magics where IPython is not installed."""

from __future__ import annotations

import ast
import io
import linecache
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import graphir


class UsageError(Exception):
    """As in IPython.core.error: a notebook shows its text alone."""


class Outputs(NamedTuple):
    """What a cell gave: its streams, the displayed objects and the value of its last expression."""

    stdout: str
    stderr: str
    displays: list[Any]
    result: Any


class Notebook:
    """The parts of IPython's shell that graphir uses. Equal cells have one path."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.magics: dict[str, dict[str, Callable[..., Any]]] = {"line": {}, "cell": {}}
        self.displays: list[Any] = []
        self.execution_count = 0
        self.user_ns: dict[str, Any] = {"__name__": "__main__", "get_ipython": lambda: self}
        self.compile = self.magics_manager = self.InteractiveTB = self.Completer = self
        self.custom_matchers: list[Any] = []

    # -- the compiler

    def cache(self, text: str, number: int, raw_code: str) -> str:
        path = f"/tmp/ipykernel_7/{hash(raw_code)}.py"
        self.numbers[path] = number
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
        return path

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", f"In[{self.numbers[name]}]") if name in self.numbers else None

    def ast_parse(self, text: str, filename: str) -> ast.Module:
        return ast.parse(text, filename)

    def transform_ast(self, tree: ast.Module) -> ast.Module:
        return tree

    def transform_cell(self, cell: str) -> str:
        cell = re.sub(r"\A(\s*\n)+", "", cell)
        if match := re.fullmatch(r"%%(\w+) ?([^\n]*)\n(.*)", cell, re.DOTALL):
            return "get_ipython().run_cell_magic({!r}, {!r}, {!r})\n".format(*match.groups())
        magic = re.compile(r"^((?:\w+ = )?)%(\w+) ?(.*)$", re.M)
        called = r"\1get_ipython().run_line_magic({0}\2{0}, {0}{0}{0}\3{0}{0}{0})".format('"')
        return magic.sub(called, cell)

    def structured_traceback(
        self, kind: type[BaseException], error: BaseException, frames: Any, tb_offset: int | None
    ) -> list[str]:
        return traceback.format_exception(kind, error, frames)

    # -- magics

    def register_magic_function(self, function: Callable[..., Any], kind: str, name: str) -> None:
        self.magics[kind][name] = function

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        return self.magics["cell"][name](line, cell)

    def run_line_magic(self, name: str, line: str) -> Any:
        if name in ("load_ext", "unload_ext"):
            assert line == "graphir"
            return getattr(graphir, f"{name.removesuffix('_ext')}_ipython_extension")(self)
        return self.magics["line"][name](line)

    # -- cells

    def run(self, cell: str, path: str = "") -> Outputs:
        """Run a cell, and return what it gave; `path` is the path of plain IPython."""
        self.execution_count = number = self.execution_count + 1
        text = self.transform_cell(cell)
        file = path or self.cache(text, number, cell)
        if path:
            self.numbers[path] = number
            linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
        tree = ast.parse(text, file)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        self.displays, result = [], None
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
            for statement in tree.body:  # each apart, as IPython does
                exec(compile(ast.Module([statement], []), file, "exec"), self.user_ns)
            if isinstance(last, ast.Expr):
                code = compile(ast.Expression(last.value), file, "eval")
                result = eval(code, self.user_ns)
        if text.rstrip().endswith(";"):
            result = None
        return Outputs(out.getvalue(), errors.getvalue(), self.displays, result)


def notebook_shell(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Return a new shell, which is that of `IPython.get_ipython()` during a test."""
    shell = Notebook()
    modules = {
        "IPython": SimpleNamespace(get_ipython=lambda: shell),
        "IPython.core": SimpleNamespace(),
        "IPython.core.completer": SimpleNamespace(
            context_matcher=lambda identifier: lambda matcher: matcher
        ),
        "IPython.core.error": SimpleNamespace(UsageError=UsageError),
        "IPython.display": SimpleNamespace(display=lambda value: shell.displays.append(value)),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return shell
