"""The calls that NumPy accepts: arrays by position, keywords, lists and scalars."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from tests.numpy_reference.arguments import ARRAYS, CANDIDATES, NEVER, RESULT, Call
from tests.numpy_reference.targets import Target, functions, methods, operators

POSITIONAL, KEYWORDS, MIXED = FORMS = ("arrays by position", "keywords", "lists and scalars")
_TRIES, _BASES = 1500, 4
_DTYPES = ("f4", "i8", "i4", "u1", "?", "c16", "f2")

_FIXED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# What **kwargs of NumPy's methods may be.
_KWARGS = ("keepdims", "initial", "where", "ddof", "dtype", "out", "axis", "casting", "order")


@cache
def targets() -> dict[str, Target]:
    """All that is called, by path."""
    return {each.path: each for each in (*functions(), *methods(), *operators())}


@cache
def calls(path: str) -> tuple[Call, ...]:
    """The calls of one target that NumPy accepts."""
    bases = base_calls(path)
    listed: dict[str, Call] = {}
    for call in itertools.chain(
        bases, *map(_of_dtypes, bases), *map(_keywords, bases), *map(_mixed, bases)
    ):
        key = f"{call.form} {call}"
        if key not in listed and _accepted(call) is not None:
            listed[key] = call
    return tuple(listed.values())


@cache
def base_calls(path: str) -> tuple[Call, ...]:
    """Of these the ones with required arguments alone, arrays being of float64 where they may."""
    return tuple(_bases(targets()[path]))


def uncalled() -> list[str]:
    """The functions for which there are no arguments that NumPy accepts."""
    return [path for path in targets() if not calls(path)]


def _accepted(call: Call) -> tuple[Any, list[Any]] | None:
    try:
        return call.expected()
    except Exception:
        return None


def _candidates(parameter: inspect.Parameter) -> tuple[Any, ...]:
    known = CANDIDATES.get(parameter.name)
    if known is not None:
        return known
    default = parameter.default
    if default is inspect.Parameter.empty:
        return ARRAYS
    if isinstance(default, bool):
        return (not default,)
    return (default * 2 + 1,) if isinstance(default, (int, float)) else ()


def _bases(target: Target) -> list[Call]:
    """Calls with required arguments alone, of different ranks where NumPy has several."""
    required = [
        p for p in target.parameters if p.kind in _FIXED and p.default is inspect.Parameter.empty
    ]
    rest = [p for p in target.parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    options = [_candidates(p) for p in required]
    tails = CANDIDATES.get(rest[0].name, ((),)) if rest else ((),)
    found: dict[Any, Call] = {}
    combinations = itertools.product(tails, *options)
    for tail, *values in itertools.islice(combinations, _TRIES):
        extra = tuple(tail) if isinstance(tail, (tuple, list)) else (tail,)
        call = Call(target, POSITIONAL, (*values, *extra), {})
        ranks = tuple(np.ndim(v) if isinstance(v, np.ndarray) else None for v in values)
        if (ranks, len(extra)) not in found and _accepted(call) is not None:
            found[ranks, len(extra)] = call
            if len(found) == _BASES:
                break
    return list(found.values())


def _of_dtypes(base: Call) -> Iterator[Call]:
    """The same call on arrays of other dtypes."""
    for dtype in _DTYPES:
        yield base._replace(args=tuple(_converted(value, dtype) for value in base.args))


def _converted(value: Any, dtype: str) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return (np.abs(value) * 2 if dtype == "u1" else value * 2).astype(dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(_converted(each, dtype) for each in value)
    return value


def _keywords(base: Call) -> Iterator[Call]:
    """The call with each optional argument by its name, and with each two that go together."""
    base = base._replace(form=KEYWORDS)
    if names := _by_name(base):
        yield base._replace(args=(), kwargs=dict(zip(names, base.args, strict=True)))
    accepted: list[dict[str, Any]] = []
    for parameter in _optional(base.target):
        for value in _candidates(parameter):
            result = _accepted(base)
            given = value
            if isinstance(value, str) and value == RESULT:
                given = None if result is None else _out(result[0])
            call = base._replace(kwargs={parameter.name: given})
            if parameter.name == "where" and base.target.leaves_out and result is not None:
                call.kwargs["out"] = _out(result[0])  # where False, results are what was there
            if given is not None and _accepted(call) is not None:
                yield call
                if parameter.name not in {name for each in accepted for name in each}:
                    accepted.append(call.kwargs)
    for one, other in itertools.combinations(accepted, 2):
        if not {*one, *other} & {"out", "mean"}:
            call = base._replace(kwargs=one | other)
            yield call
            result = _accepted(call)
            if "out" in {p.name for p in _optional(base.target)} and result is not None:
                yield call._replace(kwargs=call.kwargs | {"out": _out(result[0])})


def _optional(target: Target) -> list[inspect.Parameter]:
    """Parameters with defaults, and what **kwargs of methods may be."""
    listed = [
        p
        for p in target.parameters
        if p.kind not in _VARIADIC and p.default is not p.empty and p.name not in NEVER
    ]
    names = {p.name for p in listed}
    variadic = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in target.parameters)
    if variadic and target.path.startswith("ndarray."):
        by_name = inspect.Parameter.KEYWORD_ONLY
        listed += [inspect.Parameter(n, by_name) for n in _KWARGS if n not in names]
    return listed


def _by_name(base: Call) -> list[str]:
    """The names of the positional arguments, if all have names."""
    fixed = [p for p in base.target.parameters if p.kind in _FIXED]
    if any(p.kind is inspect.Parameter.POSITIONAL_ONLY for p in fixed[: len(base.args)]):
        return []
    return [p.name for p in fixed[: len(base.args)]] if len(fixed) >= len(base.args) else []


def _out(result: Any) -> Any:
    """Arrays to write results of this shape and dtype into."""
    if isinstance(result, tuple):
        outs = tuple(map(_out, result))
        return None if any(each is None for each in outs) else outs
    if not isinstance(result, (np.ndarray, np.generic)):
        return None
    return np.full(np.shape(result), 7).astype(result.dtype)


def _mixed(base: Call) -> Iterator[Call]:
    """The call with one array replaced by a list, a number, a NumPy scalar or another shape."""
    base = base._replace(form=MIXED, scalars=True)
    for place, value in enumerate(base.args):
        if not isinstance(value, np.ndarray):
            continue
        others: list[Any] = [value.tolist(), 2, 1.5, np.float32(1.5), np.array(2), np.int16(3)]
        if value.ndim == 1:
            others += [tuple(value.tolist()), list(value)]
        if value.ndim == 2:
            others += [list(value), value[:, :1], value[0], True]
        for other in others:
            yield base._replace(args=(*base.args[:place], other, *base.args[place + 1 :]))
