"""The keys of caches hold all that the caches read: code, constants, source, state of functions."""

from __future__ import annotations

import importlib.util
import linecache
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from runtime import interpret, record

X = np.arange(1.0, 4.0)

_ONE_LINE = """
import numpy as np
def scale(x): return np.float32(x)
def shift(x): return np.float64(x)
PAIR = (lambda x: scale(x) * 2.0), (lambda x: scale(x) * 3.0)
NAMES = (lambda x: scale(x)), (lambda x: shift(x))
TYPES = (lambda x: scale(x) * 1), (lambda x: scale(x) * 1.0), (lambda x: scale(x) * True)
SIGNS = (lambda x: scale(x) * 0.0), (lambda x: scale(x) * -0.0)
INNER = (lambda x: (lambda y: scale(y) + 1)(x)), (lambda x: (lambda y: scale(y) + 2)(x))
def closures(k): return (lambda x: scale(x) * k), (lambda x: scale(x) - k)
CLOSURES = *closures(2), *closures(3)
LOOP = [eval(f"lambda x: np.float32(x) * {k}") for k in range(3)]
"""
"""Functions of one line, whose code differs by constants, names, types of constants or columns."""


def load(path: Path, source: str) -> ModuleType:
    """Return a new module of a file with a source."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, str(path), "exec"), vars(module))
    return module


def differs(function: Callable[..., Any], *args: Any) -> bool:
    """Whether a recording of a function, or its replay, is not what the function returns."""
    expected, recording = function(*args), record(function, *args)
    results = recording.result, interpret(recording.graph, *recording.inputs)
    return any(np.asarray(result).tobytes() != np.asarray(expected).tobytes() for result in results)


def test_recordings_of_functions_of_one_line_run_their_own_code(tmp_path: Path) -> None:
    module = load(tmp_path / "one_line.py", _ONE_LINE)
    wrong = [
        f"{name}[{at}]"
        for name in ("PAIR", "NAMES", "TYPES", "SIGNS", "INNER", "CLOSURES", "LOOP")
        for at, function in enumerate(getattr(module, name))
        if differs(function, X)
    ]
    assert not wrong


def test_a_recording_runs_the_code_that_was_loaded_not_the_file_as_it_is_now(
    tmp_path: Path,
) -> None:
    path = tmp_path / "edited.py"
    source = "import numpy as np\ndef f(x):\n    return x * np.float32(x[0]) * {}\n"
    first = load(path, source.format(2))
    linecache.checkcache(str(path))
    assert not differs(first.f, X)
    second = load(path, source.format(3))  # of equal length: the time alone tells them apart
    os.utime(path, (2e9, 2e9))
    assert not differs(first.f, X)
    assert not differs(second.f, X)
    assert "cast" in {symbol.op.name for symbol in record(second.f, X).graph}
    linecache.checkcache(str(path))
    assert not differs(first.f, X)
    assert not differs(second.f, X)
