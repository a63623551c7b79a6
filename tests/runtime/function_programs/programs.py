"""A drawn program: statements, calls, and the source text of the module that holds it."""

from __future__ import annotations

import atexit
import functools
import itertools
import linecache
import shutil
import sys
import tempfile
import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.runtime.function_programs.arguments import Argument

IMPORTS = """\
import contextlib
import functools
import itertools
import json
import math
import operator
import types
import warnings

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
"""
_serial = itertools.count()


@dataclass(frozen=True)
class Statement:
    """Consecutive lines that stand or fall together, and the feature that they draw."""

    lines: tuple[str, ...]
    tag: str
    value_dependent: bool = False  # Python decides by values: a replay may hold for these alone

    def text(self, indent: str = "") -> str:
        return "".join(f"{indent}{line}\n" for line in self.lines)


@dataclass(frozen=True)
class Call:
    """Arguments by parameter; `changes` are lines that run in the module before the call."""

    arguments: Mapping[str, Argument]
    changes: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()  # the parameters that the call passes by keyword

    def text(self) -> str:
        passed = [
            f"{name}={argument.source}" if name in self.keywords else argument.source
            for name, argument in self.arguments.items()
        ]
        return "".join(f"{line}\n" for line in (*self.changes, f"program({', '.join(passed)})"))


@dataclass(frozen=True)
class Program:
    seed: int
    preamble: tuple[Statement, ...]
    parameters: tuple[str, ...]  # as written in the signature: "a", "k=3"
    body: tuple[Statement, ...]
    result: Statement
    calls: tuple[Call, ...]
    size: str  # "small", "medium", "large", "tiny": the size of its arrays

    @property
    def tags(self) -> tuple[str, ...]:
        tags = {statement.tag for statement in (*self.preamble, *self.body, self.result)}
        arguments = [one for call in self.calls for one in call.arguments.values()]
        tags |= {f"layout {one.layout}" for one in arguments if one.layout != "C"}
        return tuple(sorted((tags | {f"size {self.size}"}) - {""}))

    @property
    def value_dependent(self) -> bool:
        return any(one.value_dependent for one in (*self.preamble, *self.body, self.result))

    def source(self) -> str:
        head = IMPORTS + "\n" + "".join(one.text() for one in self.preamble) + "\n"
        body = "".join(one.text("    ") for one in (*self.body, self.result))
        return f"{head}\ndef program({', '.join(self.parameters)}):\n{body}"

    def text(self) -> str:
        """The source without unused imports, with its calls: what a report shows."""
        source = self.source().removeprefix(IMPORTS).strip("\n")
        used = [
            line
            for line in IMPORTS.splitlines()
            if line and any(f"{name.strip(',')}" in source for name in line.split()[-1:])
        ]
        calls = "\n".join(call.text().rstrip() for call in self.calls)
        return "\n".join([*used, source, "", calls])

    def without(self, statement: Statement) -> Program:
        return replace(
            self,
            preamble=tuple(one for one in self.preamble if one is not statement),
            body=tuple(one for one in self.body if one is not statement),
        )

    def load(self) -> dict[str, Any]:
        """Import the module from a file of its own, and return its namespace."""
        name = f"program_{self.seed}_{next(_serial)}"
        path = Path(_directory(), f"{name}.py")
        source = self.source()
        path.write_text(source, encoding="utf-8")
        module = types.ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        exec(compile(source, str(path), "exec"), module.__dict__)
        return module.__dict__


@functools.cache
def _directory() -> str:
    directory = tempfile.mkdtemp(prefix="function_programs_")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def unload(namespace: Mapping[str, Any]) -> None:
    """Forget a module that `Program.load` imported, and its source."""
    path = namespace["__file__"]
    sys.modules.pop(namespace["__name__"], None)
    linecache.cache.pop(path, None)
    Path(path).unlink(missing_ok=True)
