"""What there is to call: functions of np, np.linalg and np.fft; ndarray's methods and operators."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

MODULES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}

# Not called: they have nothing to do with arrays, and print, exit or run for minutes.
APART = {"test", "info", "show_config", "show_runtime", "get_include"}

# Attributes and methods that say where an array lies in memory, or what object it is.
MEMORY = {
    *("data", "ctypes", "base", "flags", "strides", "setflags", "resize", "dump", "tofile"),
    "dumps",
}

BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"),
    *("lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne", "iadd", "isub", "imul", "itruediv"),
    *("ifloordiv", "imod", "ipow", "imatmul", "iand", "ior", "ixor", "ilshift", "irshift"),
)
UNARY = ("neg", "pos", "abs", "invert", "index", "truth", "not_")


class Target(NamedTuple):
    """Something callable: its path, the call itself, and the signature to draw arguments for."""

    path: str
    function: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]

    @property
    def leaves_out(self) -> bool:
        """Whether results are left as they were where `where` is False."""
        if self.path == "ndarray.clip":
            return True
        return isinstance(getattr(np, self.path.removeprefix("np."), None), np.ufunc)


def functions() -> list[Target]:
    """The public functions and ufuncs of the three modules."""
    return [
        _target(f"{prefix}.{name}", getattr(module, name), _function(module, name))
        for prefix, module in MODULES.items()
        for name in sorted(set(module.__all__) - APART)
        if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
    ]


def methods() -> list[Target]:
    """The public methods and attributes of ndarray."""
    listed = []
    for name in sorted(n for n in dir(np.ndarray) if not n.startswith("_")):
        if name in MEMORY:
            continue
        if callable(getattr(np.ndarray, name)):
            parameters = inspect.signature(getattr(np.ndarray, name)).parameters.values()
            listed.append(Target(f"ndarray.{name}", _method(name), tuple(parameters)))
        else:
            listed.append(_target(f"ndarray.{name}", _attribute(name)))
    return listed


def operators() -> list[Target]:
    """What Python's syntax and conversions do with arrays."""
    listed = [_target(f"operator.{name}", _binary(getattr(operator, name))) for name in BINARY]
    listed += [_target(f"operator.{name}", _unary(getattr(operator, name))) for name in UNARY]
    listed += [_target(f"operator.{each.__name__}", each) for each in _SYNTAX]
    return listed


def _target(
    path: str, function: Callable[..., Any], call: Callable[..., Any] | None = None
) -> Target:
    """A target of the function's parameters, called by `call`, if it is another."""
    try:
        parameters = tuple(inspect.signature(function).parameters.values())
    except ValueError:  # no signature is known
        parameters = (inspect.Parameter("unknown", _POSITIONAL),)
    return Target(path, call or function, parameters)


_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY


def _function(module: Any, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(module, name)(*args, **kwargs)  # as programs do, when it is called

    return call


def _method(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, name)(*args, **kwargs)

    return call


def _attribute(name: str) -> Callable[..., Any]:
    def read(self: Any, /) -> Any:
        return getattr(self, name)

    return read


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x1: Any, x2: Any, /) -> Any:
        return function(x1, x2)

    return call


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, /) -> Any:
        return function(self)

    return call


def getitem(self: Any, index: Any, /) -> Any:
    return self[index]


def setitem(self: Any, index: Any, value: Any, /) -> None:
    self[index] = value


def add_to_item(self: Any, index: Any, value: Any, /) -> None:
    self[index] += value


def contains(self: Any, value: Any, /) -> bool:
    return value in self


def length(self: Any, /) -> int:
    return len(self)


def integer(self: Any, /) -> int:
    return int(self)


def floating(self: Any, /) -> float:
    return float(self)


def complex_number(self: Any, /) -> complex:
    return complex(self)


def iterate(self: Any, /) -> list[Any]:
    return list(self)


def divide_with_remainder(x1: Any, x2: Any, /) -> Any:
    return divmod(x1, x2)


def unpack(self: Any, /) -> Any:
    first, *others = self
    return first, others


_SYNTAX = (
    *(getitem, setitem, add_to_item, contains, length, integer, floating, complex_number),
    *(iterate, divide_with_remainder, unpack),
)
