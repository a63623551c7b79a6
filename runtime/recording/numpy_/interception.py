"""The replacement of functions that do not dispatch on recorded values, in all loaded modules.

NumPy's array constructors, its random numbers and Python's math functions ask no argument for its
class. During a recording, stand-ins replace them in each module that holds them under their own
names. The tables are `MAKERS` and `READERS`: each function, by its path, with its stand-in. Start
at `makers_recorded`.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import attrgetter
from types import BuiltinFunctionType, ModuleType
from typing import Any, TypeAlias, cast

import numpy as np

from graphir.numpy_api.interception import Interceptor
from graphir.runtime.recording.captured import LIBRARIES
from graphir.runtime.recording.numpy_ import outside_data
from graphir.runtime.recording.numpy_.callbacks import vectorized
from graphir.runtime.recording.numpy_.creation import CONSTRUCTORS, LIST_FUNCTIONS
from graphir.runtime.recording.numpy_.python_functions import record_math
from graphir.runtime.recording.numpy_.stand_ins import Maker, record_opaque, recorded_function

_KEPT = {__name__, "numpy._core._methods"}
"""Modules that keep NumPy's originals. This module needs them; NumPy's asks for 0-d arrays of
numbers by out=..., which stand-ins would not pass on."""
_DEMANDING = ("scipy.fft._pocketfft.pypocketfft",)
"""Compiled modules that refuse a subclass of ndarray as the array of a result."""
_RECORDED = Interceptor()
"""Has the stand-ins of all running recordings."""
_Names: TypeAlias = "Sequence[tuple[str, Any, Maker]]"
_MODULE_NAMES: dict[str, tuple[int, int, _Names]] = {}
"""A cache for installed modules, which seldom change: the id and the size of a module's namespace,
and the names in it to replace. It has at most one entry for each path of `sys.modules`."""

# -- the stand-ins by path

_COMPILED = ("_core._multiarray_umath._unique_hash", "_core._multiarray_umath._vec_string")
_RECORDERS: dict[str, Callable[..., Any]] = {
    **CONSTRUCTORS,
    **outside_data.OUTSIDE,
    **LIST_FUNCTIONS,
    **dict.fromkeys(_COMPILED, record_opaque),
}
_ORIGINALS = {
    path: function_
    for path in _RECORDERS
    if (function_ := reduce(lambda owner, name: getattr(owner, name, None), path.split("."), np))
}
MAKERS: dict[str, tuple[Any, Maker]] = {
    path: (function_, recorded_function(function_, _RECORDERS[path]))
    for path, function_ in _ORIGINALS.items()
} | {path: (attrgetter(path)(np), class_) for path, class_ in outside_data.OUTSIDE_CLASSES.items()}
"""By path in numpy: each constructor, and the stand-in that replaces it during a recording."""
_METHODS: Sequence[tuple[Any, str, Callable[..., Any]]] = (
    (np.vectorize, "_vectorize_call", vectorized),
    (np.lib.npyio.NpzFile, "__getitem__", outside_data.record_archived),
)
"""Methods of NumPy's classes that a recording replaces, each with its recorder."""


def _compiled_functions(module: ModuleType) -> dict[str, Any]:
    kinds: Any = BuiltinFunctionType, type(np.random.seed), type(np.random.rand)
    public = [name for name in dir(module) if name[0] != "_"]
    functions = {name: getattr(module, name) for name in public}
    return {name: value for name, value in functions.items() if isinstance(value, kinds)}


def _readers() -> dict[str, tuple[Any, Maker]]:
    """Return the stand-ins of Python's math functions and of numpy.random's functions, by path."""
    readers = {
        f"{module.__name__}.{name}": (function, recorded_function(function, record_math))
        for module in (math, cmath)
        for name, function in _compiled_functions(module).items()
    }
    state = {"seed", "get_state", "set_state", "default_rng", "shuffle", "bytes"}
    return readers | {
        f"numpy.random.{name}": (function, recorded_function(function, outside_data.record_outside))
        for name, function in _compiled_functions(np.random).items()
        if name not in state
    }


READERS = _readers()
_HOLDING = frozenset(("math", "cmath", "statistics", "numpy.random"))
"""The modules of installed libraries in which `READERS` are replaced too."""


def _by_last_name(wrappers: dict[str, tuple[Any, Maker]]) -> dict[str, _Names]:
    """Return the originals with their stand-ins by the last part of their paths."""
    rows: dict[str, list[tuple[str, Any, Maker]]] = {}
    for path, (original, maker) in wrappers.items():
        name = path.rpartition(".")[2]
        rows.setdefault(name, []).append((name, original, maker))
    return dict(rows)


_MAKING = _by_last_name(MAKERS)
_ALL = _by_last_name(MAKERS | READERS)

# -- the replacement in modules


@contextmanager
def makers_recorded() -> Generator[None]:
    """Context manager: inside the block, array constructors on a recording thread are recorded."""
    with _RECORDED.block(_replace):
        yield


def _replace() -> None:
    for namespace, name, maker in maker_places():
        _RECORDED.replace(namespace, name, maker)
    for owner, name, record in _METHODS:
        if name in vars(owner):
            _RECORDED.replace_attribute(owner, name, recorded_function(vars(owner)[name], record))
    for path in _DEMANDING:
        namespace = getattr(sys.modules.get(path), "__dict__", {})
        for name, original in list(namespace.items()):
            if isinstance(original, BuiltinFunctionType):
                _RECORDED.replace(namespace, name, recorded_function(original, record_opaque))


MakerPlaces: TypeAlias = "list[tuple[dict[str, Any], str, Maker]]"


def maker_places() -> MakerPlaces:
    """Return the names of NumPy's constructors in all modules, each with its stand-in."""
    return [
        (namespace, name, maker)
        for path, module in list(sys.modules.items())
        for namespace in (cast("dict[str, Any]", getattr(module, "__dict__", {})),)
        for name, original, maker in _candidates(path, namespace)
        if namespace.get(name) is original
    ]


def _candidates(path: str, namespace: dict[str, Any]) -> _Names:
    """Return the names of a module that may hold an original, with the original and its stand-in.

    Most modules are installed and unchanged: the cache is asked before all else.
    """
    entry = _MODULE_NAMES.get(path)
    if entry is not None and entry[0] == id(namespace) and entry[1] == len(namespace):
        return entry[2]
    if namespace.get("__name__") in _KEPT:
        return ()
    reads = path in _HOLDING or path.partition(".")[0] not in LIBRARIES
    table = _ALL if reads else _MAKING
    names = [row for name in table.keys() & namespace.keys() for row in table[name]]
    if not reads or "site-packages" in str(namespace.get("__file__", "")):
        _MODULE_NAMES[path] = id(namespace), len(namespace), names
    return names
