"""jit: a Python function of arrays, traced once for each signature and run as a Program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, update_wrapper
from threading import Lock
from types import MethodType
from typing import Any, Literal, TypeAlias, cast, overload

import numpy as np

from graphir import DType, GraphError, PromotionError, PromotionRules, Symbol, TensorType
from graphir.literals import literal_array, native
from graphir.location import CALLERS
from graphir.number_questions import Values
from graphir.promotion import rules as rules_named
from graphir.promotion import rules_in_force
from graphir.promotion.scalars import WEAK
from graphir.promotion.scalars import told_apart as number_key
from graphir.traced_numbers import TracedNumber
from graphir.tracing import Slot, Static, Traced, Varying, children, like, traced
from runtime.program import Program
from runtime.specialization import Specializations
from runtime.statics import Fixed, Statics, told_apart

CALLERS.add(__name__)  # so inputs are of the line that calls what is jitted

_NUMPY = rules_named("numpy")
_KEPT = 128
"""The signatures of one function that are kept; beyond that the oldest are forgotten."""


@overload
def jit(
    function: Callable[..., Any],
    *,
    rules: str | PromotionRules | None = None,
    static: str | Sequence[str] = (),
) -> Jitted: ...
@overload
def jit(
    function: None = None,
    *,
    rules: str | PromotionRules | None = None,
    static: str | Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    rules: str | PromotionRules | None = None,
    static: str | Sequence[str] = (),
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """Make a function of symbols one of arrays: `@jit` or `@jit(rules="jax")`.

    Called on arrays, numbers and other values, in nested tuples, lists and dicts, it is traced once
    for each signature: dtypes and shapes of arrays, types of int, float and complex, and all other
    values (bools and strings too), which must be hashable. Python numbers compute as Python does
    and meet arrays as the literals they are, so that 300 beside an int8 is refused under "numpy".
    Their values are no part of the signature, but what the function learns of them is: whether they
    fit, how they compare, and what it must have as a value (`range(k)`, `x[:k]`, `f"{k}"`); for new
    answers it is traced again. Under rules with weak arrays (`jax`, ...) they are weak 0-d inputs,
    as there; under rules that look at values (`max`, `numpy_legacy`, ...) they are literals, traced
    for each value. The parameters that `static` names are handed to the
    function as they are, numbers too: their values, which must be hashable, are part of it.
    Without `rules`, those of an enclosing `with rules(...)` or of set_default_rules hold, else
    "numpy": arrays promote as NumPy has it. Results are as the function has them,
    arrays for symbols and numbers. Called on symbols it is the function itself. Raises GraphError
    and what Program raises. Any number of threads may call it; those that meet a new signature at
    the same time may each trace it, and one Program is kept.
    """
    if function is None:
        return partial(Jitted, rules=rules, static=static)
    return Jitted(function, rules, static)


class Jitted:
    """What `jit` makes of a function; `traced` and `program` answer for some arguments."""

    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        function: Callable[..., Any],
        rules: str | PromotionRules | None = None,
        static: str | Sequence[str] = (),
    ) -> None:
        update_wrapper(self, function)
        self._statics = Statics(function, static) if static else None
        self._rules = None if rules is None else rules_named(rules)  # None: those in force
        self._known: dict[Any, _Compiled | Specializations[_Compiled]] = {}
        self._quick: dict[Any, Callable[..., Any]] = {}
        self._lock = Lock()

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """The results for these arguments."""
        given = args, named
        if self._statics:
            args, named = self._statics.marked(args, named)
        if not named:
            quick = self._quick.get(_flat_key(self._rules or rules_in_force(_NUMPY), args))
            if quick is not None:
                return quick(*args)
        found = self._compiled(args, named)
        return self.__wrapped__(*given[0], **given[1]) if found is None else found[0].run(found[1])

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self.__wrapped__.__qualname__}, {len(self._known)} signatures>"

    def traced(self, *args: Any, **named: Any) -> Traced:
        """The graph and the structure that a call with these arguments has; not among symbols."""
        return self._asked(args, named).traced

    def program(self, *args: Any, **named: Any) -> Program:
        """The Program that a call with these arguments runs."""
        return self._asked(args, named).program

    def _asked(self, args: Sequence[Any], named: Mapping[str, Any]) -> _Compiled:
        if self._statics:
            args, named = self._statics.marked(args, named)
        found = self._compiled(args, named)
        if found is None:
            raise GraphError("a call on symbols adds to their graph, and has no Program")
        return found[0]

    def _compiled(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[_Compiled, list[Any]] | None:
        """What runs a call, and its inputs; None of one on symbols."""
        rules = self._rules or rules_in_force(_NUMPY)
        reader = _Reader(_entry(rules))
        key = rules, reader.read(tuple(args)), reader.read(dict(named))
        if reader.symbols:
            return None
        try:
            found = self._known.get(key)
        except TypeError:
            raise _unhashable(self, key) from None
        values = list(reader.numbers)
        leaf = found.find(values) if isinstance(found, Specializations) else found
        if leaf is None:
            made = self._made(rules, args, named)
            leaf = self._keep(key, made, args, named)
            values = made.traced.numbers.values if made.traced.numbers else []
        return leaf, leaf.fed(reader.inputs, values)

    def _made(
        self, rules: PromotionRules, args: Sequence[Any], named: Mapping[str, Any]
    ) -> _Compiled:
        entry = _entry(rules)
        types, by_name = _types(tuple(args), entry), _types(dict(named), entry)
        return _Compiled(traced(self.__wrapped__, types, by_name, rules))

    def _keep(
        self, key: Any, made: _Compiled, args: Sequence[Any], named: Mapping[str, Any]
    ) -> _Compiled:
        """What is known of a signature from now on: what the first thread made of it."""
        numbers = made.traced.numbers
        with self._lock:
            found = self._known.setdefault(key, Specializations() if numbers else made)
            if not named and all(map(made.is_input, args)):
                self._quick[_flat_key(key[0], args)] = self._quick_call(found, args)
            for table in (self._known, self._quick):
                while len(table) > _KEPT:
                    del table[next(iter(table))]
        if isinstance(found, _Compiled) or numbers is None:
            return cast(_Compiled, found)
        return found.add(numbers, made)

    def _quick_call(
        self, found: _Compiled | Specializations[_Compiled], args: Sequence[Any]
    ) -> Callable[..., Any]:
        """What runs calls with such arguments, which are no structures."""
        if isinstance(found, _Compiled):
            return found.without_statics if self._statics else found.quick
        arrays = [place for place, one in enumerate(args) if _is_plain(one)]
        numbers = [place for place, one in enumerate(args) if type(one) in _NUMBERS]

        def call(*args: Any) -> Any:
            values = [args[place] for place in numbers]
            leaf = found.find(values)
            if leaf is None:
                leaf, inputs = cast("tuple[_Compiled, list[Any]]", self._compiled(args, {}))
                return leaf.run(inputs)
            return leaf.results(*leaf.fed([args[place] for place in arrays], values))

        return call


class _Compiled:
    """A signature's Program, and how its inputs and results are had."""

    def __init__(self, traced: Traced) -> None:
        self.traced, self.program = traced, Program(traced.graph)
        numbers, graph = traced.numbers, traced.graph
        self._feeds = (
            [] if numbers is None else [(f.at, f.storage(graph), f) for f in numbers.feeds]
        )
        self._numbers = [
            (place, traced.graph.committed(one.dtype))
            for place, one in enumerate(traced.graph.inputs)
            if one.dtype.weak and not traced.numbers
        ]
        slots = tuple(map(Slot, range(len(traced.graph.outputs))))
        tree, single = traced.outputs_tree, type(traced.outputs_tree) is Slot
        plain = single or (type(tree) is tuple and len(slots) > 1 and tree == slots)
        self.results = self.program if plain else self._structured
        self.quick: Callable[..., Any] = self._converting if self._numbers else self.results

    def is_input(self, value: Any) -> bool:
        """Whether an argument is an input as it is, a number that becomes one, or static."""
        kind: Any = cast("object", type(value))
        weak = bool(self._numbers or self.traced.numbers)
        return _is_plain(value) or kind is Fixed or (weak and kind in _NUMBERS)

    def fed(self, inputs: list[Any], values: Values) -> list[Any]:
        """The inputs of a call: those that are given, then those that numbers are."""
        for index, storage, feed in self._feeds:
            inputs.append(
                feed.array(values) if storage is None else np.array(values[index], storage)
            )
        return inputs

    def run(self, inputs: Sequence[Any]) -> Any:
        """The results for inputs, those that are weak being Python numbers."""
        return self.quick(*inputs)

    def without_statics(self, *args: Any) -> Any:
        """The results for arguments, of which those that are static are no inputs."""
        return self.quick(*[one for one in args if type(one) is not Fixed])

    def _converting(self, *inputs: Any) -> Any:
        arrays = list(inputs)
        for place, dtype in self._numbers:
            arrays[place] = _number(arrays[place], dtype)
        return self.results(*arrays)

    def _structured(self, *inputs: Any) -> Any:
        return self.traced.outputs(self.program(*inputs))


def _number(value: Any, dtype: DType) -> Any:
    try:
        return np.array(value, dtype.storage)
    except OverflowError:
        return literal_array(value, dtype)[1]  # which says what does not fit


# -- signatures


class _Reader:
    """Reads the signature of arguments, and their inputs on the way."""

    def __init__(self, entry: _Entry) -> None:
        self.inputs: list[Any] = []
        self.numbers: list[Any] = []
        self.symbols = False
        self._entry = entry

    def read(self, value: Any) -> Any:
        """What calls must have in common to run the same Program."""
        kind: Any = cast("object", type(value))
        if issubclass(kind, _ARRAYS):
            array = value if value.dtype.isnative else native(value)
            self.inputs.append(array)
            return array.dtype, array.shape
        if kind in _NUMBERS:
            if self._entry == "value":
                return number_key(value)
            (self.numbers if self._entry == "number" else self.inputs).append(value)
            return kind
        inside = children(value)
        if inside is not None:
            return kind, tuple([(told_apart(key), self.read(one)) for key, one in inside])
        self.symbols |= kind is Symbol or kind is TracedNumber
        return value if kind is Fixed else told_apart(value)


_NUMBERS = frozenset(WEAK) - {bool}
_ARRAYS = np.ndarray, np.generic


_Entry: TypeAlias = Literal["number", "weak", "value"]
"""How a Python number enters: as one, as a weak input, or by its value."""


def _types(value: Any, entry: _Entry) -> Any:
    """The arguments of `trace` that values stand for."""
    if issubclass(type(value), _ARRAYS):
        return TensorType(DType.from_numpy(value.dtype.newbyteorder("=")), value.shape)
    if entry != "value" and type(value) in _NUMBERS:
        return Varying(value) if entry == "number" else TensorType(WEAK[type(value)])
    inside = children(value)
    if inside is None:
        return value if type(value) is Fixed else Static(value)
    return like(value, [_types(one, entry) for _, one in inside])


@cache
def _entry(rules: PromotionRules) -> _Entry:
    """How Python numbers enter under rules."""
    if not _takes_weak(rules):
        return "value"
    return "number" if rules.of_numbers else "weak"


@cache
def _takes_weak(rules: PromotionRules) -> bool:
    """Whether rules know a Python number by its type alone: those of others look at its value.

    And whether they keep all that it has until it meets an array: TensorFlow makes it float32.
    """
    try:
        found = [rules.promote(x, DType.weak_float) for x in (DType.float32, DType.float64)]
    except PromotionError:
        return False
    kept = rules.committed(DType.weak_float)
    return not rules.by_value and all(one.exact_in(kept) for one in found)


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.isnative


def _flat_key(rules: PromotionRules, args: Sequence[Any]) -> tuple[Any, ...]:
    """The signature of arguments that are no structures, found in a fraction of the time."""
    key: list[Any] = [rules]
    for one in args:
        if type(one) is np.ndarray:
            key.append(one.dtype)
            key.append(one.shape)
        else:
            key.append(one if type(one) is Fixed else type(one))
    return tuple(key)


def _unhashable(jitted: Jitted, key: Any) -> GraphError:
    found = next(_offenders(key[1:]))
    kind = type(found).__name__
    one = f"an {kind}" if kind[0] in "AEIOaeio" else f"a {kind}"
    return GraphError(
        f"{jitted.__wrapped__.__qualname__}: an argument that is no array, number or structure of "
        f"these is part of the signature, so it must be hashable, and {one} is not; "
        "give a tuple or another value that is, or an array by np.asarray(x)"
    )


def _offenders(key: Any) -> Iterator[Any]:
    """What in a signature is not hashable."""
    if type(key) is tuple:
        for one in cast("tuple[Any, ...]", key):
            yield from _offenders(one)
        return
    try:
        hash(key)
    except TypeError:
        yield key
