"""Values and arithmetic of the oracle of drawn audits, which shares no code with graphir.

A `Value` has a NumPy dtype and an object array of Python numbers. A `Machine` computes with them in
one of two ways. As the *program*, it wraps and rounds every result to the result's dtype: it has
NumPy's bits, which checks the drawn programs and this file. As the *reference*:

- integers and bools, and dates as counts of their unit, are Python integers; none wraps. Bitwise
  ops and shifts have no meaning apart from a dtype: they take the bits of the operands' dtypes;
- floats are float64 and complex numbers pairs of float64, as NumPy computes them; float16, float32
  and complex64 do not round;
- movement (a cast, a store, `where`, a maximum, a sort, concatenation) keeps numbers as they are:
  an integer above 2**53 in a float array, a fraction in an integer array, an imaginary part in a
  real one. A cast that the program writes from a float dtype to an integer one truncates;
- float arithmetic on integers starts from their float64 rounding. An audit may also compute with
  whole numbers exactly: a machine that is `whole` does, so that there are two right answers;
- a comparison is of exact numbers, and decides which elements the reference has. Where it selects
  other elements than in the program (`x[mask]`), or where a result has no meaning, such as the
  integer of NaN, a value is *undefined*: nothing is demanded of what depends on it.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np


class Complex:
    """A complex number of two real ones, each an int or a float.

    It has no arithmetic: in an array of reals, in which the program has dropped its imaginary part,
    what NumPy does not compute with complex numbers raises a TypeError, and is undefined.
    """

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    def __repr__(self) -> str:
        return f"Complex({self.real}, {self.imag})"


NAT = None
"""The element of dates and durations that is no time."""


class RejectedError(Exception):
    """The drawn step has no meaning here, or NumPy refuses it."""


class UndefinedError(Exception):
    """The reference has no value of a step."""


class Value:
    """An array: its dtype, its elements, and whether it is undefined, which views share."""

    def __init__(self, dtype: Any, data: Any, flags: list[bool] | None = None) -> None:
        self.dtype, self.data = np.dtype(dtype), data
        self.flags = [False] if flags is None else flags

    @property
    def undefined(self) -> bool:
        """Whether the reference has no value of the array."""
        return self.flags[0]

    @property
    def kind(self) -> str:
        """The kind of the dtype."""
        return self.dtype.kind

    def view(self, data: Any) -> Value:
        """A view of the array with some of its elements."""
        return Value(self.dtype, data, self.flags)

    def copy(self) -> Value:
        """A copy."""
        return Value(self.dtype, self.data.copy(), list(self.flags))


def objects(elements: Iterable[Any], shape: tuple[int, ...]) -> Any:
    """An object array of elements in row-major order."""
    array = np.empty(math.prod(shape), object)
    for place, element in enumerate(elements):
        array[place] = element
    return array.reshape(shape)


def element(value: Value, place: int) -> Value:
    """An element of an array, as a scalar."""
    return Value(value.dtype, objects([value.data[place]], ()))


def from_numpy(array: Any) -> Value:
    """The value of an array."""
    array = np.asarray(array)
    flat = array.reshape(-1)
    if array.dtype.kind in "mM":
        counts = [NAT if np.isnat(x) else int(x.view("i8")) for x in flat]
        return Value(array.dtype, objects(counts, array.shape))
    items = flat.tolist()
    if array.dtype.kind == "c":
        items = [Complex(x.real, x.imag) for x in items]
    return Value(array.dtype, objects(items, array.shape))


def to_numpy(value: Value) -> Any:
    """The array of a value of the program."""
    elements, kind = list(value.data.reshape(-1)), value.kind
    if kind in "mM":
        least = -(2**63)
        array = np.array([least if x is NAT else x for x in elements], "i8").view(value.dtype)
    elif kind == "c":
        array = np.array([complex(x.real, x.imag) for x in elements], value.dtype)
    else:
        array = np.array(elements, value.dtype)
    return array.reshape(value.data.shape)


NANOSECONDS = {"D": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9}
NANOSECONDS |= {"ms": 10**6, "us": 10**3, "ns": 1}


def unit_of(dtype: Any) -> int:
    """The nanoseconds of a date's unit."""
    name, count = np.datetime_data(dtype)
    if name not in NANOSECONDS:
        raise RejectedError(name)
    return NANOSECONDS[name] * count


def _wrapped(number: int, dtype: Any) -> int:
    bits = dtype.itemsize * 8
    number &= 2**bits - 1
    return number - 2**bits if dtype.kind in "imM" and number >= 2 ** (bits - 1) else number


def _as_float(element: Any) -> float:
    try:
        return float(element)
    except OverflowError:
        return math.inf if element > 0 else -math.inf


def is_whole(element: Any) -> bool:
    """Whether an element is an integer in value."""
    return isinstance(element, int) or (isinstance(element, float) and element.is_integer())


def same(real: Any, exact: Any) -> bool:
    """Whether a program's element is the exact one; NaN is NaN, NaT is NaT."""
    if real is NAT or exact is NAT:
        return real is exact
    if isinstance(real, Complex) or isinstance(exact, Complex):
        parts = [(x.real, x.imag) for x in (real, exact)]
        nan = [any(v != v for v in part) for part in parts]
        return all(nan) or (not any(nan) and parts[0] == parts[1])
    return real == exact or (real != real and exact != exact)


def _floor_divide(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return float(np.floor_divide(_as_float(x), _as_float(y)))
    return x // y if y else 0


def _remainder(x: Any, y: Any) -> Any:
    if isinstance(x, float) or isinstance(y, float):
        return float(np.remainder(_as_float(x), _as_float(y)))
    return x % y if y else 0


def _extreme(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def pick(x: Any, y: Any) -> Any:
        if x is NAT or y is NAT:
            return NAT
        if x != x or y != y:
            return math.nan
        return x if better(x, y) or x == y else y

    return pick


def _sign(x: Any) -> Any:
    return x if x != x else (x > 0) - (x < 0)


MOVING = {
    "maximum": _extreme(operator.gt),
    "minimum": _extreme(operator.lt),
    "positive": lambda x: x,
}
RING: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "absolute": abs,
    "square": lambda x: x * x,
}
INTEGRAL = {**RING, "floor_divide": _floor_divide, "remainder": _remainder, "sign": _sign}
COMPARING = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
BITWISE = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "right_shift": operator.rshift,
    "left_shift": operator.lshift,
    "invert": operator.invert,
}
BOOLEAN = {
    "add": operator.or_,
    "multiply": operator.and_,
    "maximum": operator.or_,
    "minimum": operator.and_,
    "absolute": lambda x: x,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "invert": operator.not_,
}


class Machine:
    """The program, or the reference if `exact`; a `whole` one computes whole floats exactly."""

    def __init__(self, exact: bool, whole: bool = False, program: Machine | None = None) -> None:
        self.exact, self.whole = exact, whole
        self.statement: Any = None
        self._places: dict[Any, list[Any]] = {}
        self._program = program
        self.left: dict[Any, list[Value]] = {}

    # Conversions

    def fit(self, dtype: Any, elements: Sequence[Any]) -> list[Any]:
        """Elements as the dtype has them: wrapped and rounded by the program."""
        if self.exact:
            return list(elements)
        if dtype.kind in "iumM":
            fits = [x if x is NAT else _wrapped(int(x), dtype) for x in elements]
            return [NAT if dtype.kind in "mM" and x == -(2**63) else x for x in fits]
        return list(elements)

    def made(self, dtype: Any, elements: Sequence[Any], shape: tuple[int, ...]) -> Value:
        """A value of elements that are not rounded yet."""
        dtype = np.dtype(dtype)
        return Value(dtype, objects(self.fit(dtype, elements), shape))

    def literal(self, number: Any, dtype: Any) -> Value:
        """A Python number beside an array, which NumPy converts to a dtype."""
        if isinstance(number, complex):
            number = Complex(number.real, number.imag)
        value = Value(dtype, objects([number], ()))
        if self.exact:
            return self.convert(value, dtype)
        plain = complex(number.real, number.imag) if isinstance(number, Complex) else number
        try:
            with np.errstate(all="ignore"):
                return from_numpy(np.asarray(plain, dtype))
        except (OverflowError, TypeError) as error:
            raise RejectedError(str(error)) from error

    def convert(self, value: Value, dtype: Any, written: bool = False) -> Value:
        """A value in another dtype; `written` if the program says so, by astype."""
        dtype = np.dtype(dtype)
        if dtype == value.dtype and not self.exact:
            return value
        kinds = value.kind + dtype.kind
        if value.kind == dtype.kind and value.kind in "mM" and value.dtype != dtype:
            converted = self._in_unit(value, dtype)
        elif not self.exact and (value.kind in "fc" or dtype.kind in "fc"):
            if kinds[1] in "mM":
                raise RejectedError(kinds)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ComplexWarning
                return from_numpy(to_numpy(value).astype(dtype))
        elif kinds in ("fm", "fM", "cm", "cM", "mf", "Mf", "mb", "Mb", "bm", "bM", "mM", "Mm"):
            raise RejectedError(kinds)
        else:
            truncates = written and value.kind in "fc"
            converted = [_converted(x, kinds[1], truncates) for x in value.data.reshape(-1)]
        return self.made(dtype, converted, value.data.shape)

    def _in_unit(self, value: Value, dtype: Any) -> list[Any]:
        before, after = unit_of(value.dtype), unit_of(dtype)
        counts = [x if x is NAT else x * before // after for x in value.data.reshape(-1)]
        if not self.exact and any(x is not NAT and abs(x) >= 2**63 for x in counts):
            raise RejectedError("NumPy's conversion of dates that overflow")
        return counts

    # Ufuncs

    def ufunc(self, name: str, *operands: Any) -> Value:
        """A ufunc on values and Python numbers."""
        function = getattr(np, name)
        types = [x.dtype if isinstance(x, Value) else type(x) for x in operands]
        try:
            *ins, out = function.resolve_dtypes((*types, None))
        except TypeError as error:
            raise RejectedError(str(error)) from error
        values = [
            self.convert(x, dtype) if isinstance(x, Value) else self.literal(x, dtype)
            for x, dtype in zip(operands, ins, strict=True)
        ]
        try:
            arrays = np.broadcast_arrays(*(x.data for x in values))
        except ValueError as error:
            raise RejectedError(str(error)) from error
        flat = [list(x.reshape(-1)) for x in arrays]
        results = self._computed(name, ins, out, flat)
        return self.made(out, results, arrays[0].shape)

    def _computed(self, name: str, ins: list[Any], out: Any, flat: list[list[Any]]) -> list[Any]:
        rows = list(zip(*flat, strict=True))
        kinds = "".join(dtype.kind for dtype in ins)
        if name in ("logical_and", "logical_or", "logical_not"):
            pick = {"and": lambda x, y: x and y, "or": lambda x, y: x or y, "not": operator.not_}
            function = pick[name[8:]]
            return [function(*(_truth(x) for x in row)) for row in rows]
        if name in ("isnan", "isfinite"):
            return [_is_float(name, x) for (x,) in rows]
        if name == "isnat":
            return [x is NAT for (x,) in rows]
        if set(kinds) & set("mM"):
            return [_of_dates(name, kinds, row) for row in rows]
        if name in COMPARING:
            return [_compared(name, *row) for row in rows]
        if name in MOVING and "c" not in kinds:
            if any(isinstance(x, Complex) for row in rows for x in row):
                raise UndefinedError(name)
            return [MOVING[name](*row) for row in rows]
        if set(kinds) == {"b"} and name in BOOLEAN:
            return [BOOLEAN[name](*row) for row in rows]
        if name in BITWISE:
            return [_bitwise(name, row, ins[0]) for row in rows]
        if name == "conjugate" and kinds == "c":
            return [Complex(x.real, -x.imag) for (x,) in rows]
        if set(kinds) <= set("iub") and name in INTEGRAL:
            if any(isinstance(x, Complex) for row in rows for x in row):
                return self._floats(name, ins, out, flat)
            return [INTEGRAL[name](*row) for row in rows]
        results = self._floats(name, ins, out, flat)
        exactly = {**INTEGRAL, "floor": int, "rint": int}.get(name)
        if self.whole and exactly and out.kind == "f":
            for place, row in enumerate(rows):
                if all(map(is_whole, row)) and (name in RING or row[-1]):
                    results[place] = exactly(*map(int, row))
        return results

    def _floats(self, name: str, ins: list[Any], out: Any, flat: list[list[Any]]) -> list[Any]:
        with np.errstate(all="ignore"):
            arrays = [self.floats(x, dtype) for x, dtype in zip(flat, ins, strict=True)]
            try:
                result = getattr(np, name)(*arrays)
            except TypeError as error:
                raise UndefinedError(name) from error
        return list(from_numpy(result).data)

    def floats(self, elements: Sequence[Any], dtype: Any) -> Any:
        """Elements as floats or complex numbers that NumPy computes with."""
        if any(isinstance(x, Complex) for x in elements):
            pairs = [x if isinstance(x, Complex) else Complex(x, 0.0) for x in elements]
            numbers = [complex(_as_float(x.real), _as_float(x.imag)) for x in pairs]
            return np.array(numbers, np.complex128 if self.exact else dtype)
        if not self.exact:
            return np.array(elements, dtype)
        wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
        return np.array([_as_float(x) for x in elements], wide)

    # Other functions

    def mask(self, value: Value) -> Any:
        """A mask that selects elements: its shape is that of the run, or nothing is demanded."""
        return self.decided(value.data.astype(bool))

    def decided(self, places: Any) -> Any:
        """Places that values decide: those of the run, or nothing is demanded."""
        decisions = self._places.setdefault(id(self.statement), [])
        decisions.append(places)
        if self._program is not None:
            of_program = self._program._places[id(self.statement)]
            if not np.array_equal(places, of_program[len(decisions) - 1]):
                raise UndefinedError("places")
        return places

    def joined(self, *operands: Any) -> list[Value]:
        """Values in their common dtype, for movement."""
        types = [x.dtype if isinstance(x, Value) else x for x in operands]
        try:
            dtype = np.result_type(*types)
        except TypeError as error:
            raise RejectedError(str(error)) from error
        if dtype.kind in "OSU":
            raise RejectedError(str(dtype))
        return [
            self.convert(x, dtype) if isinstance(x, Value) else self.literal(x, dtype)
            for x in operands
        ]

    def by_lane(self, value: Value, axis: int | None, function: Callable[[list[Any]], Any]) -> Any:
        """The object array of a function of each lane, to an element or to a list."""
        data = value.data.reshape(-1) if axis is None else np.moveaxis(value.data, axis, -1)
        lanes = data.reshape(-1, data.shape[-1])
        results = [function(list(lane)) for lane in lanes]
        if results and isinstance(results[0], list):
            elements = [x for lane in results for x in lane]
            whole = objects(elements, (*data.shape[:-1], len(results[0])))
            return whole if axis is None else np.moveaxis(whole, -1, axis)
        return objects(results, data.shape[:-1])

    def reduction(
        self, name: str, value: Value, axis: int | None = None, dtype: Any = None
    ) -> Value:
        """A reduction or a scan."""
        kind = value.kind
        if name in ("any", "all"):
            test = {"any": any, "all": all}[name]
            if kind in "mM":
                raise RejectedError(name)
            data = self.by_lane(value, axis, lambda lane: test(map(_truth, lane)))
            return Value(bool, data)
        if name in ("max", "min"):
            if kind == "c" or _has_complex(value):
                raise UndefinedError(name) if self.exact else RejectedError(name)
            return Value(value.dtype, self.by_lane(value, axis, lambda x: _most(name, x)))
        if name in ("argmax", "argmin"):
            if kind in "cmM" or _has_complex(value):
                raise UndefinedError(name) if self.exact else RejectedError(name)
            return Value(np.int64, self.by_lane(value, axis, lambda x: _place(name[3:], x)))
        if name == "count_nonzero":
            if kind in "mM":
                raise RejectedError(name)
            return Value(np.int64, self.by_lane(value, axis, lambda x: sum(map(_truth, x))))
        if kind == "M" or (kind == "m" and name not in ("sum", "cumsum")):
            raise RejectedError(name)
        if name in ("sum", "prod", "cumsum", "cumprod"):
            return self._sum(name, value, axis, dtype)
        return self._by_numpy(name, value, axis)

    def _sum(self, name: str, value: Value, axis: int | None, dtype: Any) -> Value:
        own = value.dtype
        if dtype is None and own.kind in "iub" and own.itemsize < 8:
            own = np.dtype(np.uint64 if own.kind == "u" else np.int64)
        target = own if dtype is None else np.dtype(dtype)
        value = self.convert(value, target)
        flat = list(value.data.reshape(-1))
        is_exact = target.kind in "ium" or (self.whole and all(map(is_whole, flat)))
        if not is_exact or any(isinstance(x, (float, Complex)) for x in flat if target.kind != "f"):
            return self._by_numpy(name, value, axis)
        step = operator.mul if "prod" in name else operator.add

        def of_lane(lane: list[Any]) -> Any:
            lane = [x if x is NAT else int(x) for x in lane]
            total, rounds = lane[0], [lane[0]]
            for x in lane[1:]:
                total = NAT if x is NAT or total is NAT else step(total, x)
                rounds.append(total)
            return rounds if "cum" in name else total

        data = self.by_lane(value, axis, of_lane)
        return self.made(target, list(data.reshape(-1)), data.shape)

    def _by_numpy(self, name: str, value: Value, axis: int | None) -> Value:
        """A reduction of floats, as NumPy computes it."""
        flat = list(value.data.reshape(-1))
        if self.exact:
            array = self.floats(flat, value.dtype).reshape(value.data.shape)
        else:
            array = to_numpy(value)
        with np.errstate(all="ignore"):
            result = getattr(np, name)(array, axis=axis)
            own = getattr(np, name)(np.ones((2,) * value.data.ndim, value.dtype), axis=axis)
        found = from_numpy(result)
        found.dtype = own.dtype
        return found

    def sorted(self, value: Value) -> Value:
        """`np.sort` along the last axis."""
        if value.kind == "c" or _has_complex(value):
            raise UndefinedError("sort") if self.exact else RejectedError("sort")
        data = self.by_lane(value, value.data.ndim - 1, lambda x: sorted(x, key=_order))
        return Value(value.dtype, data)

    def argsorted(self, value: Value) -> Value:
        """A stable `np.argsort` along the last axis."""
        if value.kind == "c" or _has_complex(value):
            raise UndefinedError("sort") if self.exact else RejectedError("sort")
        data = self.by_lane(
            value,
            value.data.ndim - 1,
            lambda x: sorted(range(len(x)), key=lambda i: _order(x[i])),
        )
        return Value(np.int64, data)

    def store(self, target: Value, at: Any, source: Any) -> None:
        """Store a value, or a number, at an index of an array."""
        try:
            if not isinstance(source, Value):
                source = self.literal(source, target.dtype)
            if source.undefined:
                raise UndefinedError("the stored value")
            converted = self.convert(source, target.dtype).data
            target.data[at] = converted if converted.ndim else converted[()]
        except UndefinedError:
            target.flags[0] = True
        except (OverflowError, ValueError) as error:
            raise RejectedError(str(error)) from error

    def store_element(self, target: Value, at: int, source: Value) -> None:
        """Store a scalar, which NumPy refuses to wrap."""
        number = source.data[()]
        if target.kind in "iu" and not self.exact:
            info = np.iinfo(target.dtype)
            if source.kind == "c" or not info.min <= number <= info.max:
                raise RejectedError("out of bounds")
        if target.kind == "M" and source.kind != "M":
            raise RejectedError("a duration")
        self.store(target, at, source)

    def leave(self, key: Any, value: Value) -> None:
        """A value leaves the program."""
        self.left.setdefault(key, []).append(value.copy())


def _truth(x: Any) -> bool:
    return bool(x.real or x.imag) if isinstance(x, Complex) else bool(x)


def _is_float(name: str, x: Any) -> bool:
    parts = (x.real, x.imag) if isinstance(x, Complex) else (x,)
    if name == "isnan":
        return any(v != v for v in parts)
    return all(v == v and abs(v) != math.inf for v in parts)


def _compared(name: str, x: Any, y: Any) -> bool:
    if isinstance(x, Complex) or isinstance(y, Complex):
        if name not in ("equal", "not_equal"):
            raise UndefinedError(name)
        equal = x.real == y.real and x.imag == y.imag
        return equal == (name == "equal")
    return bool(COMPARING[name](x, y))


def _bitwise(name: str, row: Sequence[Any], dtype: Any) -> Any:
    if any(not isinstance(x, int) for x in row):
        raise UndefinedError(name)
    bits = [_wrapped(x, dtype) for x in row]
    if "shift" in name and not 0 <= bits[1] < dtype.itemsize * 8:
        raise RejectedError("a shift by all bits")
    return _wrapped(BITWISE[name](*bits), dtype)


def _of_dates(name: str, kinds: str, row: Sequence[Any]) -> Any:
    """A ufunc of dates and durations, on counts of a common unit."""
    if name in COMPARING:
        return name == "not_equal" if NAT in row else COMPARING[name](*row)
    if any(x is NAT or x != x for x in row):
        if name in ("floor_divide", "divide") and kinds == "mm":
            return 0 if name == "floor_divide" else math.nan
        return NAT
    if name in MOVING:
        return MOVING[name](*row)
    if name in ("add", "subtract", "negative", "absolute", "sign"):
        return INTEGRAL[name](*row)
    x, y = row
    if name == "multiply":
        product = x * y
        if isinstance(product, float):
            return int(product) if abs(product) < 2**63 else _reject(name)
        return product
    if name == "divide" and kinds == "mm":
        with np.errstate(all="ignore"):
            return float(np.float64(_as_float(x)) / np.float64(_as_float(y)))
    if name in ("floor_divide", "remainder") and kinds == "mm":
        if y == 0:
            return 0 if name == "floor_divide" else NAT
        return INTEGRAL[name](x, y)
    if name in ("divide", "floor_divide") and kinds[1] in "iu":
        if y == 0:
            return NAT
        quotient = x // y
        if name == "divide":  # the loop of C truncates
            quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient
    if name == "divide":
        quotient = float(np.float64(_as_float(x)) / np.float64(y)) if y else math.inf
        return int(quotient) if abs(quotient) < 2**63 else _reject(name)
    return _reject(name)


def _reject(name: str) -> Any:
    raise RejectedError(name)


def _converted(x: Any, kind: str, written: bool) -> Any:
    """An element of the reference, or an integer of the program, in a dtype of another kind."""
    if x is NAT:
        if kind in "iu":
            return -(2**63)
        return x
    if kind in "mM" and not isinstance(x, int):
        raise UndefinedError("the time of a fraction")
    if kind in "mM" and x == -(2**63):
        return NAT
    if kind == "b":
        return _truth(x)
    if kind == "c":
        return x if isinstance(x, Complex) else Complex(x, 0.0)
    if isinstance(x, Complex):
        if x.imag == 0:
            return _converted(x.real, kind, written)
        real = _converted(x.real, kind, written)
        return Complex(real, x.imag)
    if isinstance(x, bool):
        return int(x)
    if kind in "iu" and isinstance(x, float) and x.is_integer():
        return int(x)
    if kind in "iumM" and isinstance(x, float) and written:
        if not math.isfinite(x):
            raise UndefinedError("the integer of no number")
        return int(x)
    return x


def _has_complex(value: Value) -> bool:
    return any(isinstance(x, Complex) for x in value.data.reshape(-1))


def _most(name: str, lane: list[Any]) -> Any:
    pick, result = MOVING[f"{name}imum"], lane[0]
    for x in lane[1:]:
        result = pick(result, x)
    return result


def _place(name: str, lane: list[Any]) -> int:
    nan = [i for i, x in enumerate(lane) if x != x]
    return nan[0] if nan else lane.index(_most(name, lane))


def _order(x: Any) -> tuple[bool, Any]:
    """The key of a sort: NaN and NaT are last."""
    is_last = x is NAT or x != x
    return is_last, 0 if is_last else x
