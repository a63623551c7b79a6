"""The start of the tier: what it relies on is tried on this machine, once, when first wanted."""

from __future__ import annotations

import ctypes
import logging
from importlib import import_module
from typing import Any

import numpy as np

from runtime.native.background import LOCK

_LOG = logging.getLogger("graphir.native")


class UnusableError(Exception):
    """There is no machine code in this process; the message says why."""


class _Start:
    """What is known: the module that needs llvmlite, as it is tried and then; or why it fails."""

    engine: Any = None
    trying = False
    failed = ""
    told = False


def engine() -> Any:
    """The module that needs llvmlite, which has shown that it works. Raises UnusableError."""
    if _Start.engine is None or _Start.trying:
        with LOCK:
            if _Start.failed:
                raise UnusableError(_Start.failed)
            if _Start.engine is None:
                _try()
    return _Start.engine


def told(error: Exception) -> str:
    """An error of LLVM as a reason to stay in NumPy; the first of a process is logged."""
    why = _said(error)
    if not _Start.told:
        _Start.told = True
        _LOG.warning("no machine code, NumPy computes instead: %s", why)
    return why


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, UnusableError) else f"{type(error).__name__}: {error}"


def _try() -> None:
    _Start.trying = True
    try:
        found: Any = import_module("runtime.native.engine")
        _Start.engine = found
        _ufuncs_are_as_declared()
        found.entries = _arrays_are_as_declared()
        _computes(found)
    except BaseException as error:
        _Start.engine = None
        if not isinstance(error, Exception):  # an interrupt: the next one tries again
            raise
        known = isinstance(error, UnusableError)  # whatever it is, there is NumPy
        _Start.failed = f"{'' if known else 'llvmlite fails, '}{_said(error)}"
        raise UnusableError(_Start.failed) from error
    finally:
        _Start.trying = False


def _computes(found: Any) -> None:
    """A small program, vectors and a loop of NumPy's, against NumPy: by blocks, by an entry."""
    from graphir import Graph, ops
    from runtime.program.program import Program

    graph = Graph("probe")
    x = graph.input("float32", ("n",), name="x")
    graph.output(ops.exp(x) * x + x)
    given = np.linspace(-90, 90, 77, dtype=np.float32)
    with np.errstate(all="ignore"):
        wanted = (np.exp(given) * given + given).tobytes()
    program = Program(graph, block=32, native="now")
    same = program(given).tobytes() == wanted
    kernels = program.kernels(0)
    if kernels is None or kernels.why:
        raise UnusableError(kernels.why if kernels else "it is switched off")
    if not same:
        raise UnusableError("machine code computes other values than NumPy")
    program = Program(graph, native="now")
    if any(program(given).tobytes() != wanted for _ in range(3)):
        found.entries = False


def _ufuncs_are_as_declared() -> None:
    from runtime.native.loops import UfuncFields

    for ufunc in (np.add, np.exp, np.isnan):
        fields = UfuncFields.from_address(id(ufunc))
        found = fields.nin, fields.nout, fields.nargs, fields.ntypes
        if found != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
            raise UnusableError("the C structure of this NumPy's ufuncs is another one")


def _arrays_are_as_declared() -> bool:
    """Whether the fields of an array lie where entries read them: those whose values are known."""
    from runtime.native import entry

    array = np.zeros((3, 5, 7), np.float32)
    words = (ctypes.c_int64 * (array.__sizeof__() // 8)).from_address(id(array))
    numbers = ctypes.cast(words, ctypes.POINTER(ctypes.c_int32))
    return (
        words[1] == id(np.ndarray)
        and words[entry.DATA] == array.ctypes.data
        and numbers[2 * entry.NDIM] == array.ndim
        and words[entry.DIMS] + 8 * array.ndim == words[entry.DIMS + 1]  # strides follow dims
        and words[entry.DTYPE] == id(array.dtype)
        and numbers[2 * entry.FLAGS] == array.flags.num
    )
