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
from graphir.numpy_api.reductions.masked import UNSET

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

_METHODS = {
    **dict.fromkeys(("all", "any"), "axis=None, out=None, keepdims=False, *, where=True"),
    **dict.fromkeys(("argmax", "argmin"), "axis=None, out=None, *, keepdims=False"),
    **dict.fromkeys(("max", "min"), "axis=None, out=None, **kwargs"),
    **dict.fromkeys(("mean", "prod", "sum"), "axis=None, dtype=None, out=None, **kwargs"),
    **dict.fromkeys(("std", "var"), "axis=None, dtype=None, out=None, ddof=0, **kwargs"),
    **dict.fromkeys(("cumprod", "cumsum"), "axis=None, dtype=None, out=None"),
    **dict.fromkeys(("conj", "conjugate", "dumps", "nonzero", "tolist"), ""),
    **dict.fromkeys(("copy", "flatten", "ravel", "tobytes"), "order='C'"),
    **dict.fromkeys(("item", "transpose"), "*args"),
    **dict.fromkeys(("argsort", "sort"), "axis=-1, kind=None, order=None, *, stable=None"),
    "astype": "dtype, order='K', casting='unsafe', subok=True, copy=True",
    "byteswap": "inplace=False",
    "choose": "choices, out=None, mode='raise'",
    "clip": "min=None, max=None, out=None, **kwargs",
    "compress": "condition, axis=None, out=None",
    "diagonal": "offset=0, axis1=0, axis2=1",
    "dot": "other, out=None",
    "fill": "value",
    "put": "indices, values, mode='raise'",
    "repeat": "repeats, axis=None",
    "reshape": "*shape, order='C', copy=None",
    "resize": "*new_shape, refcheck=True",
    "round": "decimals=0, out=None",
    "searchsorted": "v, side='left', sorter=None",
    "setflags": "write=None, align=None, uic=None",
    "squeeze": "axis=None",
    "swapaxes": "axis1, axis2",
    "take": "indices, axis=None, out=None, mode='raise'",
    "trace": "offset=0, axis1=0, axis2=1, dtype=None, out=None",
    "view": "*args, **kwargs",
    **dict.fromkeys(("argpartition", "partition"), "kth, axis=-1, kind='introselect', order=None"),
}
"""The parameters of ndarray's methods in NumPy 2.0 to 2.4, without `self`."""
_UFUNC_METHODS = {
    "reduce": "array, /, axis=0, dtype=None, out=None, **kwargs",
    "accumulate": "array, /, axis=0, dtype=None, out=None",
    "reduceat": "array, /, indices, axis=0, dtype=None, out=None",
    "outer": "A, B, /, **kwargs",
    "at": "a, indices, b=None, /",
}
_FUNCTIONS = {
    "where": "condition, x=None, y=None, /",
    "concatenate": "arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind'",
    "dot": "a, b, out=None",
    "bincount": "x, /, weights=None, minlength=0",
    "lexsort": "keys, axis=-1",
    "copyto": "dst, src, casting='same_kind', where=True",
    "putmask": "a, /, mask, values",
    "empty_like": "prototype, /, dtype=None, order='K', subok=True, shape=None, *, device=None",
    "array": "object, dtype=None, *, copy=True, order='K', subok=False, ndmin=0, like=None",
    "arange": "start_or_stop, /, stop=None, step=1, *, dtype=None, device=None, like=None",
    "fromstring": "string, dtype=float, count=-1, *, sep, like=None",
    "fromiter": "iter, dtype, count=-1, *, like=None",
    **dict.fromkeys(("inner", "vdot"), "a, b, /"),
    **dict.fromkeys(
        ("asarray", "asanyarray"), "a, dtype=None, order=None, *, device=None, copy=None, like=None"
    ),
    **dict.fromkeys(("ascontiguousarray", "asfortranarray"), "a, dtype=None, *, like=None"),
    **dict.fromkeys(("zeros", "empty"), "shape, dtype=None, order='C', *, device=None, like=None"),
}
"""The parameters of compiled functions, which have no signature before NumPy 2.4."""


def _of_text(text: str) -> Signature:
    return inspect.signature(eval(f"lambda {text}: None"))


def method_signature(name: str) -> Signature:
    """Return the signature of a method of ndarray in the releases of NumPy that handlers know."""
    return _of_text(f"self, {_METHODS[name]}")


@cache
def signature_of(function: Any) -> Signature | None:
    """Return the signature of a function, method or ufunc of the installed NumPy; None without."""
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        pass
    if isinstance(function, np.ufunc):
        names = ", ".join(f"x{i + 1}" for i in range(function.nin))
        settings = "out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True"
        return _of_text(f"{names}, /, {settings}, signature=None, **kwargs")
    name: str = getattr(function, "__name__", "")
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return _of_text(_UFUNC_METHODS[name])
    if getattr(function, "__objclass__", None) is np.ndarray:
        return method_signature(name) if name in _METHODS else None
    return _of_text(_FUNCTIONS[name]) if name in _FUNCTIONS else None


class _Names(NamedTuple):
    """The parameters that a handler names."""

    places: Sequence[str]
    settings: frozenset[str]
    any_places: bool
    """Whether the handler takes any number of operands."""
    all: bool
    """Whether the handler hands every argument on to NumPy."""


@cache
def names_of(handler: Any, leading: int) -> _Names:
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


def _bound_method(of_numpy: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        places, settings = bound(of_numpy, method, args, kwargs)
        return method(*places, **settings)

    return call
