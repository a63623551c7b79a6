"""The parameters of NumPy's functions: each is named by a function's handler, or refused by name.

A handler computes a NumPy function on symbols. `bound` binds a call to the signature of the NumPy
that is installed, and then to the handler's. So a parameter of a newer NumPy is refused instead of
ignored, and an argument that NumPy does not have raises NumPy's own TypeError. Required parameters
correspond by their places, and all others by their names.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from graphir.errors import MissingOpError
from graphir.numpy_api.reductions import UNSET
from graphir.semantics.library_calls import Function

_FIXES = {
    "out": "a symbol never changes; use the result, as in x = np.add(x, y)",
    "where": "choose with np.where(condition, result, other)",
    "initial": "combine the result with it",
    "dtype": "cast an operand with .astype(...)",
}
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "where": (True,),
    "out": ((None,), (None, None)),
    "initial": (UNSET,),
    "subok": (True, False),
    "device": (None, "cpu"),
    "like": (None,),
}
"""Values of parameters that change nothing for plain arrays, whatever the default is."""
_SETTINGS = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_PLACED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

_UNSIGNED = {"fromstring": "string, dtype=float, count=-1, *, sep, like=None"}
"""The parameters of compiled functions that have no signature."""


def _of_text(text: str) -> Signature:
    return inspect.signature(eval(f"lambda {text}: None"))


@cache
def signature_of(function: Function) -> Signature | None:
    """Return the signature of a function, method or ufunc of the installed NumPy; None without."""
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        name: str = getattr(function, "__name__", "")
        return _of_text(_UNSIGNED[name]) if name in _UNSIGNED else None


class _Names(NamedTuple):
    """The parameters that a handler names."""

    places: Sequence[str]
    settings: frozenset[str]
    any_places: bool
    """Whether the handler takes any number of operands."""
    all: bool
    """Whether the handler hands every argument on to NumPy."""


@cache
def names_of(handler: Function, leading: int) -> _Names:
    """Return the parameters of a handler, without the first `leading` ones."""
    parameters = [*inspect.signature(handler).parameters.values()][leading:]
    kinds = {parameter.kind for parameter in parameters}
    return _Names(
        [parameter.name for parameter in parameters if parameter.kind in _PLACED],
        frozenset(parameter.name for parameter in parameters if parameter.kind in _SETTINGS),
        Parameter.VAR_POSITIONAL in kinds,
        Parameter.VAR_KEYWORD in kinds,
    )


def bound(
    function: Any, handler: Any, args: Sequence[Any], kwargs: Mapping[str, Any], leading: int = 0
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a NumPy function's call as its handler takes them.

    They follow the handler's first `leading` parameters. The function raises NumPy's TypeError for
    arguments that the installed function does not have, and MissingOpError for those that the
    handler does not name, unless they are at their defaults.
    """
    installed = signature_of(function)
    if installed is None:
        return tuple(args), dict(kwargs)
    try:
        arguments = installed.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{function.__name__}() {error}") from None
    names = names_of(handler, leading)
    if names.all:
        return tuple(args), dict(kwargs)
    places: list[Any] = []
    settings: dict[str, Any] = {}
    in_order = True
    for place, (name, parameter) in enumerate(installed.parameters.items()):
        if name not in arguments:
            in_order = False
            continue
        value: Any = arguments[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            places += value
        elif parameter.kind is Parameter.VAR_KEYWORD:
            for key, setting in value.items():
                _set(settings, names, Parameter(key, Parameter.KEYWORD_ONLY), setting)
        elif in_order and _corresponds(parameter, place, names, installed):
            places.append(value)
        else:
            in_order = False
            _set(settings, names, parameter, value)
    return tuple(places), settings


def _corresponds(parameter: Parameter, place: int, names: _Names, installed: Signature) -> bool:
    """Whether an argument of a required parameter is the handler's argument in this place."""
    if parameter.kind not in _PLACED or parameter.default is not Parameter.empty:
        return False
    if place >= len(names.places):
        return names.any_places
    name = names.places[place]
    return name == parameter.name or name not in installed.parameters


def _set(settings: dict[str, Any], names: _Names, parameter: Parameter, value: Any) -> None:
    """Add an argument to the settings of a handler; raise MissingOpError if it does not name it."""
    if value is np._NoValue:  # pyright: ignore
        return
    if parameter.name in names.settings:
        settings[parameter.name] = value
    elif not _is_default(parameter, value):
        refuse(parameter.name)


def _is_default(parameter: Parameter, value: Any) -> bool:
    default: Any = parameter.default
    neutral = _NEUTRAL.get(parameter.name, ())
    if value is default or any(_same(value, each) for each in neutral):
        return True
    return _same(value, default)


def _same(value: Any, other: Any) -> bool:
    """Whether two settings are the same; arrays and symbols are no settings."""
    if type(value) is not type(other) or not isinstance(value, (bool, int, float, str, tuple)):
        return value is other
    return repr(cast("object", value)) == repr(other)


def without_usual_axes(ufunc: np.ufunc, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a generalized ufunc without `axis` or `axes` that name its last axes.

    NumPy itself passes these: `x @= y` calls matmul with axes, and np.linalg.vecdot passes axis=-1.
    """
    if ufunc.signature is None or not ("axis" in kwargs or "axes" in kwargs):
        return kwargs
    cores = [core.count(",") + bool(core) for core in re.findall(r"\((.*?)\)", ufunc.signature)]
    usual = {"axis": -1, "axes": [tuple(range(-count, 0)) for count in cores]}
    return {k: v for k, v in kwargs.items() if k not in usual or repr(v) != repr(usual[k])}


def refuse(name: str) -> NoReturn:
    """Raise MissingOpError for an argument that no handler takes."""
    fix = _FIXES.get(name, "leave it out")
    raise MissingOpError(f"a call with symbols takes no {name}=", fix=fix)


def bind_methods(kind: type) -> None:
    """Bind the calls of a class's methods, under the names of ndarray's, to NumPy's signatures."""
    for name in dir(np.ndarray):
        method: Any = inspect.getattr_static(kind, name, None)
        if name[0] != "_" and isinstance(method, FunctionType):
            setattr(kind, name, _bound_method(getattr(np.ndarray, name), method))


def _bound_method(of_numpy: Function, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        places, settings = bound(of_numpy, method, args, kwargs)
        return method(*places, **settings)

    return call
