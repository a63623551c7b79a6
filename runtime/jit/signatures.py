"""Signatures of calls: the cache key of a call of a jitted function, its inputs, static arguments.

Static arguments are Python values that are part of the signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.import_names import is_own_module
from graphir.ir.foreign_arrays import is_foreign_array, to_numpy_array
from graphir.ir.literals import native
from graphir.numpy_api.argument_trees import Static, Varying, children, like
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.ops.op import GraphValue
from graphir.promotion.scalars import WEAK
from graphir.promotion.scalars import identity_key as number_key
from graphir.public import (
    DType,
    GraphError,
    Location,
    PromotionError,
    PromotionRules,
    TensorType,
)
from graphir.runtime.jit.loads import is_library_module
from graphir.runtime.user_code import component_made


class Reader:
    """Reader of a call's signature, which collects the inputs and numbers on the way.

    `symbols` is True if an argument belongs to a graph under construction.
    """

    def __init__(self, entry: Entry) -> None:
        self.inputs: list[Any] = []
        self.sources: list[Any] = []
        """The arguments that became `inputs`, before their conversion."""
        self.numbers: list[Any] = []
        self.symbols = False
        self._entry = entry

    def read(self, value: Any) -> Any:
        """Return the cache key of an argument and append its arrays to `inputs`."""
        kind: Any = cast("object", type(value))
        if issubclass(kind, _ARRAYS):
            return self._array(value)
        if kind in NUMBERS:
            if self._entry == "value":
                return number_key(value)
            if self._entry == "number":
                self.numbers.append(value)
            else:
                self.inputs.append(value)
                self.sources.append(value)
            return kind
        if kind is TracedNumber or issubclass(kind, GraphValue):
            self.symbols = True
            return kind
        inside = children(value)
        if inside is not None:
            return kind, tuple([(identity_key(key), self.read(item)) for key, item in inside])
        if is_foreign_array(kind):
            return self._array(to_numpy_array(value), value)
        return value if kind is Fixed else identity_key(value)

    def _array(self, value: Any, source: Any = None) -> Any:
        array = as_input(value)
        self.inputs.append(array)
        self.sources.append(value if source is None else source)
        if issubclass(type(array), np.generic):
            return cast("Any", type(array))
        return array.dtype, array.shape


def as_input(value: Any) -> Any:
    """Return an array as a Program takes it: a NumPy array in native byte order.

    Raises GraphError for a subclass of np.ndarray, such as a matrix, whose operators may differ.
    """
    kind: Any = cast("object", type(value))
    if kind not in (np.ndarray, np.memmap) and not issubclass(kind, np.generic):
        if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            name = f"{kind.__module__}.{kind.__name__}"
            array = cast("NDArray[Any]", value)
            raise GraphError(
                f"jit: an operator on a {name} may differ from that on its array",
                got=f"a {name}, {array.dtype}{list(array.shape)}",
                fix="give np.asarray(x)",
            )
        is_array = isinstance(value, np.ndarray)
        value = cast("NDArray[Any]", value) if is_array else to_numpy_array(value)
    return value if value.dtype.isnative else native(value)


NUMBERS = frozenset(WEAK) - {bool}
_ARRAYS = np.ndarray, np.generic


Entry: TypeAlias = Literal["number", "weak", "value"]
"""How a Python number enters a trace: as a traced number, as a weak input, or by its value."""


def types_of(value: Any, entry: Entry) -> Any:
    """Return the `trace` arguments for values: types for arrays, Varying or Static for others."""
    if is_foreign_array(cast("type[Any]", type(value))):
        value = to_numpy_array(value)
    if issubclass(type(value), np.generic):
        return value
    if issubclass(type(value), _ARRAYS):
        return TensorType(DType.from_numpy(value.dtype.newbyteorder("=")), value.shape)
    if entry != "value" and type(value) in NUMBERS:
        return Varying(value) if entry == "number" else TensorType(WEAK[type(value)])
    inside = children(value)
    if inside is None:
        return value if type(value) is Fixed else Static(value)
    return like(value, [types_of(item, entry) for _, item in inside])


@cache
def entry(rules: PromotionRules) -> Entry:
    """Return how Python numbers enter a trace under `rules`."""
    if not _takes_weak(rules):
        return "value"
    return "number" if rules.of_numbers else "weak"


@cache
def _takes_weak(rules: PromotionRules) -> bool:
    """Whether rules treat a Python number as weak: by its type alone, at full precision.

    Value-based rules inspect the value. TensorFlow's rules convert a float to float32 before it
    meets an array.
    """
    try:
        results = [rules.promote(x, DType.weak_float) for x in (DType.float32, DType.float64)]
    except PromotionError:
        return False
    weak_dtype = rules.concrete_dtype(DType.weak_float)
    return not rules.by_value and all(dtype.exact_in(weak_dtype) for dtype in results)


def is_plain(value: Any) -> bool:
    """Whether an argument is an input without conversion: a native np.ndarray."""
    return type(value) is np.ndarray and value.dtype.isnative


def flat_key(rules: PromotionRules, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the cache key of arguments without nested structures; a fast path of Reader."""
    key: list[Any] = [rules]
    for arg in args:
        if type(arg) is np.ndarray:
            key.append(arg.dtype)
            key.append(arg.shape)
        else:
            key.append(arg if type(arg) is Fixed else type(arg))
    return tuple(key)


def unhashable(name: str, key: tuple[Any, ...]) -> GraphError:
    """Return the error for a signature that is not hashable."""
    offender = next(_offenders(key[1:]))
    kind = type(offender).__name__
    phrase = f"an {kind}" if kind[0] in "AEIOaeio" else f"a {kind}"
    return GraphError(
        f"{name}: an argument that is no array, number or structure of these is part of the "
        f"signature, so it must be hashable, and {phrase} is not",
        fix="give a tuple or another value that is, or an array by np.asarray(x)",
    )


def _offenders(key: Any) -> Iterator[Any]:
    """Yield the parts of a signature that are not hashable."""
    if type(key) is tuple:
        for item in cast("tuple[Any, ...]", key):
            yield from _offenders(item)
        return
    try:
        hash(key)
    except TypeError:
        yield key


class Fixed(Static):
    """A static argument; it equals another if a function cannot distinguish their values."""

    __slots__ = ("_hash", "_key")
    _key: Any
    _hash: int

    def __init__(self, value: Any) -> None:
        hash(value)  # raises TypeError for mutable values such as a list
        key = identity_key(value)
        for name, field in (("value", value), ("_key", key), ("_hash", hash(key))):
            object.__setattr__(self, name, field)

    def __eq__(self, other: object) -> bool:
        return type(other) is Fixed and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


def identity_key(value: Any) -> Any:
    """Return a key that distinguishes equal values: 1 from 1.0 and True, 0.0 from -0.0.

    Equal sets differ by their order, and equal times and decimals by their text.
    """
    kind: Any = cast("object", type(value))
    if kind is str or kind is int:
        return kind, value
    inside = children(value)
    if inside is not None:
        return kind, tuple((identity_key(name), identity_key(item)) for name, item in inside)
    if issubclass(kind, frozenset):
        return kind, tuple(map(identity_key, cast("frozenset[Any]", value)))
    if is_dataclass(value) and cast("Any", value).__dataclass_params__.frozen:
        fields_apart = _of_fields(value)
        return kind, value, id(value) if fields_apart is None else fields_apart
    if _is_equal_by_own_code(kind):
        # The class's own __eq__ may ignore fields that a function reads.
        return kind, value, id(value)
    if issubclass(kind, (float, complex, np.inexact)):
        return kind, repr(value)
    return (kind, value, repr(value)) if _has_equal_values(kind) else (kind, value)


@cache
def _has_equal_values(kind: type) -> bool:
    """Whether values of a library's class can be equal and differ: Decimal("1.0") and "1.00"."""
    if kind.__eq__ is object.__eq__:
        return False
    return not issubclass(kind, (bool, bytes, np.generic, type)) and kind is not type(None)


@cache
def _is_equal_by_own_code(kind: type) -> bool:
    """Whether a user's class, or a class of graphir, defines `__eq__`."""
    if kind.__eq__ is object.__eq__:
        return False
    return not is_library_module(kind.__module__) or is_own_module(kind.__module__)


def _of_fields(value: Any) -> Any:
    """Return the identity keys of a dataclass's fields, or None if a field is not hashable."""
    keys = tuple(identity_key(getattr(value, field.name, None)) for field in fields(value))
    try:
        hash(keys)
    except TypeError:
        return None
    return keys


class Statics:
    """The static parameters of a function, by name and by position."""

    def __init__(self, function: Callable[..., Any], names: str | Sequence[str]) -> None:
        self._what = getattr(function, "__qualname__", "the function")
        self._names = dict.fromkeys((names,) if isinstance(names, str) else names)
        parameters = inspect.signature(function).parameters.values()
        positional = [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL]
        missing = self._names.keys() - {parameter.name for parameter in parameters}
        if missing and not any(
            parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters
        ):
            raise GraphError(
                f"{self._what} has no parameter "
                f"{', '.join(map(repr, sorted(missing)))} to be static",
                fix=f"use one of ({', '.join(map(str, parameters))})",
            )
        self._places = [
            (place, name) for place, name in enumerate(positional) if name in self._names
        ]

    def marked(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a call's arguments with static ones as Fixed; GraphError if not hashable."""
        positional = list(args)
        for place, name in self._places:
            if place < len(positional):
                positional[place] = self._fix(name, positional[place])
        return tuple(positional), {
            name: self._fix(name, value) if name in self._names else value
            for name, value in keywords.items()
        }

    def _fix(self, name: str, value: Any) -> Fixed:
        try:
            return Fixed(value)
        except TypeError:
            raise GraphError(
                f"the static argument {name!r} of {self._what} is part of the signature, so it "
                f"must be hashable, and a {type(value).__name__} is not",
                fix="give a tuple for a list, and an array to a parameter that is not static",
            ) from None


_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


class ArgumentTypes:
    """The dtypes and shapes of the arguments of a call by name, and the place of the call."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        place: Location,
    ) -> None:
        self.place, self._function = place, getattr(function, "__name__", "the function")
        self._types: dict[str, tuple[str, tuple[int, ...]]] = {}
        try:
            given = inspect.signature(function).bind(*args, **keywords).arguments
        except (TypeError, ValueError):  # compiled functions may lack a signature
            given = {}
        for name, value in given.items():
            self._add(name, value)

    def _add(self, name: str, value: Any) -> None:
        inside = children(value)
        if inside is not None:
            for key, part in inside:
                is_field = hasattr(value, "_fields")
                self._add(f"{name}.{key}" if is_field else f"{name}[{key!r}]", part)
        elif hasattr(value, "dtype") and hasattr(value, "shape"):
            self._types[name] = str(value.dtype), tuple(value.shape)
        elif type(value) in NUMBERS:
            self._types[name] = f"a Python {type(value).__name__}", ()

    def differences(self, later: ArgumentTypes) -> Iterator[str]:
        """Yield a sentence for each argument whose dtype alone differs in a later call."""
        types = self._types.items()
        if {name: shape for name, (_, shape) in types} != {
            name: shape for name, (_, shape) in later._types.items()
        }:
            return
        for name, (dtype, _) in types:
            other = later._types[name][0]
            if other != dtype:
                is_again = later.place == self.place  # in a loop, which has another value then
                since = "" if is_again else later._made(name)
                yield (
                    f"{self._function} is traced twice: `{name}` is {dtype}{self._made(name)} in "
                    f"one call and {other}{since} in the next"
                )

    def _made(self, name: str) -> str:
        """Return ` since line 7: text`, for the line that makes an argument."""
        line = component_made(self.place, name)
        return "" if line is None else f" since {line.seen_from(self.place)}"
