"""Exact wide values of which int64 and float64 lack elements: integers beyond 64 bits, ids and NaN.

Such a value is an *exact array*: an object array of Python's numbers, which are int, float and
complex, or a uint64 array with elements beyond int64. Python's arithmetic is exact for integers,
and rounds an integer where it meets a float. The ops that take exact arrays are of these kinds:

- movement applies NumPy's function to the objects;
- an op that orders its operands, such as `less` or `sort`, applies to the ranks of the elements;
- arithmetic applies Python's operators, element by element, and sums and products to integers only;
- bitwise ops take the bits of their dtype. Every other op takes the rounded values.

Operands that all fit uint64 are moved and ordered as such, at the speed of NumPy. An object array
costs some 50 ns an element and op, so that its size has limits: ELEMENTS or MOVABLE, and BITS of an
integer. What exceeds them raises ExecutionError, and has no value in wide arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, methodcaller
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.public import DType, ExecutionError, Op, ops
from graphir.runtime.audit.double_double import Numbers, numbers
from graphir.semantics.kernels import KERNEL_TABLES

Array: TypeAlias = NDArray[Any]

ELEMENTS = 1 << 18
"""The most elements of an object array that arithmetic makes or takes: about 0.1 s an op."""
MOVABLE = 1 << 22
"""The same of movement and order, as of ids beside NaN, where no integer grows."""
BITS = 500
"""The most bits of an integer: its square is a finite float64, as norms of errors need it."""
TOO_MANY = "has too many elements for exact integers beyond 64 bits, or beside floats"
TOO_LONG = f"makes integers of more than {BITS} bits"

WIDE_DTYPES = DType.bool, DType.int64, DType.uint64, DType.float64, DType.complex128
"""The dtypes of wide values, the narrowest first; uint64 is that of exact arrays alone."""
_OF_CHARACTER = {dtype.storage.char: dtype for dtype in WIDE_DTYPES}


def numbers_at(wide: Array, parts: int) -> Numbers:
    """Return a vector of wide values as double-double numbers of `parts` parts."""
    return numbers(wide, wide_dtype(wide), parts)


def is_exact_array(x: Array) -> bool:
    """Whether a wide value is an exact array."""
    return x.dtype.kind in "uO"


def wide_dtype(array: Array) -> DType:
    """Return the DType of an array of wide values; of objects, that of their rounding."""
    if array.dtype == object:
        return DType.complex128 if complex in _types(array) else DType.float64
    return _OF_CHARACTER.get(array.dtype.char) or DType.from_numpy(array.dtype)


def fits_float64(x: Array) -> bool:
    """Whether all integers are within +-2**53, where float64 is exact."""
    return not x.size or bool(x.min() >= -(2**53) and x.max() <= 2**53)


def are_close(x: Array) -> bool:
    """Whether all floats that are finite are within +-2**53."""
    return fits_float64(x[np.isfinite(x)])


def objects(x: Array) -> Array:
    """Return the elements as Python's numbers."""
    return (x.astype(np.int64) if x.dtype == np.bool_ else x).astype(object)


def whole_numbers(x: Array) -> Array:
    """Return the elements as Python's numbers, with integers in place of whole floats."""
    return _mapped(lambda v: int(v) if type(v) is float and v.is_integer() else v, objects(x))


def cast_numbers(x: Array, is_real: bool, truncates: bool) -> Array:
    """Return an exact array as a cast makes it: a real number of each real one, without fractions.

    NaN and infinities stay, and so does an imaginary part that is not 0.
    """
    if x.dtype == np.uint64 or not is_real:
        return x

    def number(v: complex) -> Any:
        real, imaginary = v.real, v.imag
        if truncates and math.isfinite(real):
            real = int(real)
        return complex(real, imaginary) if imaginary else real

    return narrow(_mapped(number, x))


def element(number: complex) -> Array:
    """Return a number of Python as an array without axes."""
    result = np.empty((), object)
    result[()] = number
    return result


def narrow(x: Array | complex) -> Array:
    """Return objects, or a number, as int64, float64 or complex128 if that has all of them.

    Raises ExecutionError for an integer of more than BITS.
    """
    if not isinstance(x, np.ndarray):
        x = element(x)
    if x.dtype != object:
        return np.array(x, order="C")
    types = _types(x)
    integers = [v for v in x.reshape(-1).tolist() if type(v) is int] if int in types else []
    least, most = (min(integers), max(integers)) if integers else (0, 0)
    if max(-least, most).bit_length() > BITS:
        raise ExecutionError(TOO_LONG)
    if types <= {int}:
        fits = least >= -(2**63) and most < 2**63
        return x.astype(np.int64) if fits else np.array(x, order="C")
    if least >= -(2**53) and most <= 2**53:
        return x.astype(np.complex128 if complex in types else np.float64)
    return np.array(x, order="C")


def join(x: Array, y: Array) -> tuple[Array, Array]:
    """Return two parts of one wide value in the dtype that has the elements of both."""
    if x.dtype == y.dtype:
        return x, y
    parts = [as_whole(v) for v in (x, y)]
    if all(v.dtype == np.int64 for v in parts):
        return parts[0], parts[1]
    integers = [v for v in (x, y) if v.dtype.kind not in "fc"]
    if len(integers) < 2 and all(v.dtype != object and fits_float64(v) for v in integers):
        dtype = np.result_type(*(v for v in (x, y) if v.dtype.kind in "fc"))
        return x.astype(dtype), y.astype(dtype)
    return objects(x), objects(y)


def surely_fits_int64(x: Array) -> bool:
    """Whether float64 values of integers are in int64's range by a margin of 2**53 for rounding."""
    most = 2.0**63 - 2.0**53
    return not x.size or bool(x.min() >= -most and x.max() <= most)


def fits_int64(x: Array) -> bool:
    """Whether all numbers are in int64's range."""
    return not x.size or bool(x.min() >= -(2.0**63) and x.max() < 2.0**63)


def as_whole(x: Array) -> Array:
    """Return float64 values as int64 if all are integers in its range."""
    is_whole = x.dtype == np.float64 and surely_fits_int64(x) and bool((x == np.trunc(x)).all())
    return x.astype(np.int64) if is_whole else x


def as_unsigned(op: Op, operands: Sequence[Array]) -> Sequence[Array] | None:
    """Return operands with the values of an op as uint64 if that has all of them."""
    results = list(operands)
    for i, x in enumerate(operands):
        if not is_value(op, i):
            continue
        if x.dtype != np.uint64 and (x.dtype != np.int64 or (x.size and x.min() < 0)):
            return None
        results[i] = x.astype(np.uint64, copy=False)
    return results


def bits_of(x: Array) -> Array:
    """Return the int64 values that are congruent modulo 2**64 to integers.

    Fractions are truncated; infinities and NaN, which have no bits, become 0.
    """
    if x.dtype != object:
        return x.astype(np.int64)

    def bits(v: complex) -> int:
        v = v.real
        number = int(v) if math.isfinite(v) else 0
        return (number + 2**63) % 2**64 - 2**63

    return _mapped(bits, x).astype(np.int64)


# -- ops

MOVING = {ops.where, ops.positive}
"""The ops besides those of movement that move elements, or select them by a condition."""
ORDERED = {
    *(ops.equal, ops.not_equal, ops.less, ops.less_equal, ops.greater, ops.greater_equal),
    *(ops.maximum, ops.minimum, ops.clip, ops.max, ops.min, ops.sort),
    *(ops.argmax, ops.argmin, ops.argsort, ops.searchsorted),
}
"""The ops whose results depend on the order of the elements, and select or locate some of them."""
_LOCATING = {ops.argmax, ops.argmin, ops.argsort, ops.searchsorted}
DIVIDING = {ops.floor_divide, ops.remainder, ops.fmod}
PARTS = {ops.real, ops.imag, ops.conj}
"""The ops on the parts of complex numbers, which may be integers."""


_PLACES = frozenset(("indices", "mask"))
"""The names of the operands that tell places."""


def selects(op: Op) -> bool:
    """Whether the result of an op has elements of its operands, or tells their order."""
    return op.kind == "movement" or op in MOVING or op in ORDERED


def keeps_complex(op: Op) -> bool:
    """Whether an op takes complex numbers whose real part is an integer that float64 lacks."""
    return selects(op) or op is ops.index_add or op in PARTS or op is ops.negative


def takes(op: Op, is_integer: bool) -> bool:
    """Whether an op with integers as its results, or with floats, takes exact arrays."""
    if op in DIVIDING:
        return is_integer
    return selects(op) or op is ops.index_add or op in ELEMENTWISE or op in WHOLE


def is_value(op: Op, position: int) -> bool:
    """Whether an operand has the elements of a result, and is no condition and no index."""
    is_condition = op is ops.where and position == 0
    return not is_condition and op.operand(position) not in _PLACES


def apply(
    op: Op,
    settings: Mapping[str, Any],
    operands: Sequence[Array],
    evaluate: Callable[[Sequence[Array]], Array],
    is_integer: bool,
) -> Array | None:
    """Apply an op that takes exact arrays; None if it takes their rounded values after all.

    `evaluate` applies the op to operands whose values are float64. Raises ExecutionError beyond the
    limits of integers, and for numbers that the op does not take.
    """
    try:
        if op in ORDERED:
            result = _order(op, operands, evaluate)
        elif op in WHOLE:
            result = _combine(op, settings, operands, evaluate)
        else:
            result = _apply(op, settings, operands, is_integer)
    except (TypeError, OverflowError) as error:
        raise ExecutionError(str(error)) from None
    return None if result is None else narrow(result)


def _apply(op: Op, settings: Mapping[str, Any], operands: Sequence[Array], is_integer: bool) -> Any:
    """Apply an op that moves elements, or computes with each of them."""
    places = [i for i in range(len(operands)) if is_value(op, i)]
    values = list(operands)
    for i in places:
        values[i] = objects(operands[i]) if selects(op) else whole_numbers(operands[i])
    if not (selects(op) or is_integer or all(_types(values[i]) <= {int} for i in places)):
        for i in places:
            values[i] = objects(operands[i])
    if op in ELEMENTWISE:
        return ELEMENTWISE[op](*values)
    if "value" in settings:
        settings = {**settings, "value": objects(np.asarray(settings["value"]))}
    return KERNEL_TABLES["numpy"][op.name](*values, **settings)


def _order(
    op: Op, operands: Sequence[Array], evaluate: Callable[[Sequence[Array]], Array]
) -> Array:
    """Apply an op that orders elements to their ranks."""
    values = [objects(x) for x in operands]
    pool = {v for x in values for v in x.reshape(-1).tolist() if v == v}
    if any(type(v) is complex for v in pool):
        if op not in (ops.equal, ops.not_equal):
            raise ExecutionError("orders complex numbers")
        ranks: dict[Any, float] = {v: i + 1.0 for i, v in enumerate(pool)}
    else:
        nonzero = sorted(v for v in pool if v)
        first = sum(v < 0 for v in nonzero)
        ranks = {v: i - first + (i >= first) for i, v in enumerate(nonzero)}

    def rank(v: complex) -> float:
        return math.nan if v != v else ranks[v] if v else v.real  # keeps the sign of a zero

    result = evaluate([_mapped(rank, x).astype(np.float64) for x in values])
    if result.dtype == np.bool_ or op in _LOCATING:
        return result
    numbers_by_rank: dict[float, Any] = {place: v for v, place in ranks.items()}
    return _mapped(lambda r: numbers_by_rank.get(r, r) if r == r else r, objects(result))


def _division(of_integers: Callable[[int, int], int], of_floats: np.ufunc) -> np.ufunc:
    """Return a division of numbers; an integer by 0 is 0, as in NumPy."""

    def divided(x: float, y: float) -> Any:
        if type(x) is int and type(y) is int:
            return of_integers(x, y) if y else 0
        return float(of_floats(float(x), float(y))) if y or not math.isfinite(x) else 0

    return np.frompyfunc(divided, 2, 1)


def _quotient(x: float, y: float) -> Any:
    """Return x / y, rounded once; of integers that divide the quotient itself."""
    if type(x) is int and type(y) is int and y:
        return x // y if x % y == 0 else x / y
    return float(np.divide(float(x), float(y)))


def _of_floats(function: Callable[[float], Any]) -> Callable[[Any], Any]:
    """Return a function of floats that leaves integers as they are."""
    return lambda v: v if type(v) is int else float(function(v))


ELEMENTWISE: Mapping[Op, Callable[..., Any]] = {
    ops.add: np.add,
    ops.subtract: np.subtract,
    ops.multiply: np.multiply,
    ops.negative: np.negative,
    ops.abs: np.absolute,
    ops.square: np.square,
    ops.divide: np.frompyfunc(_quotient, 2, 1),
    ops.floor_divide: _division(int.__floordiv__, np.floor_divide),
    ops.remainder: _division(int.__mod__, np.remainder),
    ops.fmod: _division(lambda x, y: int(math.copysign(1, x)) * (abs(x) % abs(y)), np.fmod),
    ops.floor: np.frompyfunc(_of_floats(np.floor), 1, 1),
    ops.ceil: np.frompyfunc(_of_floats(np.ceil), 1, 1),
    ops.trunc: np.frompyfunc(_of_floats(np.trunc), 1, 1),
    ops.round: np.frompyfunc(_of_floats(np.rint), 1, 1),
    ops.real: np.frompyfunc(attrgetter("real"), 1, 1),
    ops.imag: np.frompyfunc(attrgetter("imag"), 1, 1),
    ops.conj: np.frompyfunc(methodcaller("conjugate"), 1, 1),
}
"""Arithmetic on each element."""


def _sum_where(x: Array, mask: Array, **settings: Any) -> Any:
    axis, keepdims = settings["axis"], settings["keepdims"]
    total: Any = np.add.reduce(np.where(mask, x, 0), axis, keepdims=keepdims)
    return total + (settings.get("initial") or 0)


def _matmul(x: Array, y: Array, layout: Any = None) -> Any:
    return np.matmul(x, y)


_ROWS = ops.sum, ops.prod, ops.cumulative_sum, ops.cumulative_prod
WHOLE: Mapping[Op, Callable[..., Any]] = {
    **{op: KERNEL_TABLES["numpy"][op.name] for op in _ROWS},
    ops.pow: np.power,
    ops.numpy_sum: _sum_where,
    ops.matmul: _matmul,
    ops.tensordot: np.tensordot,
    ops.outer: np.multiply.outer,
}
"""Powers, and arithmetic on several elements, whose order matters to floats: of integers alone."""


def _combine(
    op: Op,
    settings: Mapping[str, Any],
    operands: Sequence[Array],
    evaluate: Callable[[Sequence[Array]], Array],
) -> Any:
    """Apply an op of WHOLE to integers; None if some values are none.

    The float64 result is finite where the integers have at most BITS.
    """
    values = [whole_numbers(x) if is_value(op, i) else x for i, x in enumerate(operands)]
    if any(not _types(x) <= {int} for i, x in enumerate(values) if is_value(op, i)):
        return None
    floats = [x.astype(np.float64) if is_value(op, i) else x for i, x in enumerate(values)]
    size = np.abs(evaluate(floats))
    if not (size < 2.0**BITS).all():
        raise ExecutionError(TOO_LONG)
    if op.kind == "contraction" and math.isqrt(size.size * math.prod(x.size for x in values)) > (
        ELEMENTS
    ):
        raise ExecutionError(TOO_MANY)
    if op is ops.pow and any(v < 0 for v in values[1].reshape(-1).tolist()):
        raise ExecutionError("raises integers to negative powers")
    return WHOLE[op](*values, **settings)


def with_difference(value: Array, exact: Array, actual: Array) -> Array:
    """Return value + (actual - exact), or the actual number where that is not finite."""

    def shifted(v: complex, expected: complex, real: complex) -> Any:
        if expected == real or (expected != expected and real != real):
            return v
        try:
            result = v + (real - expected)
            return result if math.isfinite(abs(result)) else real
        except OverflowError:
            return real

    return narrow(np.frompyfunc(shifted, 3, 1)(objects(value), objects(exact), objects(actual)))


def _mapped(function: Callable[[Any], Any], x: Array) -> Array:
    result = np.empty(x.size, object)
    result[:] = [function(v) for v in x.reshape(-1).tolist()]
    return result.reshape(x.shape)


def _types(x: Array) -> set[type]:
    return set(map(type, x.reshape(-1).tolist()))
