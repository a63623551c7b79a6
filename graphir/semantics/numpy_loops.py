"""The inner loops that NumPy chooses for a ufunc, by the strides of its operands.

NumPy has several loops for many functions of floats: vectors of neighbouring elements, strided
ones, and one element at a time where a stride is negative, say. They round differently, and which
there are depends on the processor. NumPy's own iterator tells the strides that a loop gets, and an
experiment tells whether a function has other bits at these strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import count
from typing import Any, TypeAlias, cast

import numpy as np

from graphir.dtypes import DType
from graphir.hints import Array
from graphir.ops.control import Callee
from graphir.ops.types import TensorType, TupleType
from graphir.semantics.library_calls import (
    MemoryLayout,
    NewArrayPlace,
    NumPyCall,
    OperandPlace,
    has_odd_step,
)
from graphir.semantics.matrix_products import laid_out, strides_of

Steps: TypeAlias = tuple[int, ...]
"""The distance from an element to the next, in elements, of each operand of an inner loop."""

_TRIALS = 2**16
_ZEROS = 1 / 8
"""The share of zeros, of which loops of maximum, say, choose one or the other sign."""


def has_contiguous_bits(ufunc: np.ufunc, operands: Sequence[Any], outs: Sequence[Any] = ()) -> bool:
    """Whether a ufunc gives the bits that it gives of contiguous copies of the operands.

    For float16 the copies are of float32, as those of ops are, and the result is rounded. Operands
    are arrays, whose elements the function does not read, or NumPy scalars or numbers. `outs` are
    the arrays of `out=`, or None in place of a new array.
    """
    has_half = any(type(x) is np.ndarray and x.dtype.char == "e" for x in operands)
    if ufunc.signature or (not has_half and all(map(_is_in_order, (*operands, *outs)))):
        return True
    dtypes = loop_dtypes(ufunc, operands)
    if dtypes is None or not any(dtype.kind in "fc" for dtype in dtypes):
        return True
    codes = "".join([dtype.char for dtype in dtypes[: ufunc.nin]])
    return all(
        _is_as_contiguous(ufunc, codes, steps)
        for steps in inner_steps(ufunc, operands, dtypes, outs)
        if "e" in codes or any(step not in (0, 1) for step in steps)
    )


def _is_in_order(value: Any) -> bool:
    if not isinstance(value, np.ndarray):
        return True
    array = cast("Array", value)
    return array.flags.c_contiguous and array.flags.aligned and not has_odd_step(array)


LIKE_POWERS: Mapping[np.ufunc, str] = {
    np.exp2: "write np.power(2.0, x)",
    np.float_power: "write np.power(x.astype(float), y)",
}
"""The ufuncs of floats that the op `pow` computes up to the last bits, with what to write instead.
"""


_UMATH: Any = import_module("numpy._core.umath")
CLIP: np.ufunc = _UMATH.clip
"""The ufunc of np.clip."""
_BY_DTYPE = {*LIKE_POWERS, np.power, CLIP, np.reciprocal}
"""The ufuncs whose ops have other bits for some dtypes or values."""


def ufunc_of(name: str) -> np.ufunc:
    """Return the ufunc of an attribute `loop`."""
    return CLIP if name == "clip" else getattr(np, name)


def _keeps_zeros(low: Any, high: Any) -> bool:
    """Whether np.clip keeps the sign of a zero, beside a bound 0 of the other sign.

    NumPy compares with bounds without axes, and takes the greater or lesser of others.
    """
    return not (np.ndim(low) or np.ndim(high)) and bool(low == 0 or high == 0)


def has_op_bits(ufunc: np.ufunc, operands: Sequence[Any], outs: Sequence[Any] = ()) -> bool:
    """Whether an op, whose kernel reads contiguous operands, has the bits of a ufunc.

    The arguments are those of `has_contiguous_bits`; here the exponent of a power is read.
    """
    if ufunc not in _BY_DTYPE:
        return has_contiguous_bits(ufunc, operands, outs)
    dtypes = loop_dtypes(ufunc, operands)
    if dtypes is None or is_of_processor(ufunc, dtypes[0]):
        return dtypes is None
    if ufunc in LIKE_POWERS or (ufunc is np.power and squares(operands[1])):
        return dtypes[0].kind not in "fc"
    if ufunc is CLIP and dtypes[0].kind == "f" and _keeps_zeros(*operands[1:]):
        return False
    return has_contiguous_bits(ufunc, operands, outs)


def is_of_processor(ufunc: np.ufunc, dtype: np.dtype[Any]) -> bool:
    """Whether the processor decides results: of np.reciprocal of the integer 0, which ops have 0.

    NumPy converts the infinity 1.0 / 0 to an integer.
    """
    return ufunc is np.reciprocal and dtype.kind in "iu"


def adds_in_memory_order(ufunc: np.ufunc, operands: Sequence[Any]) -> bool:
    """Whether a generalized ufunc adds products of floats in an order that no product of ops has.

    NumPy calls BLAS for vectors of neighbouring elements alone.
    """
    if ufunc.__name__ not in ("vecdot", "matvec", "vecmat"):
        return False
    arrays = [x for x in operands if type(x) is np.ndarray and x.dtype.kind in "fc"]
    return not all(map(_is_in_order, arrays))


def squares(exponent: Any) -> bool:
    """Whether an exponent has elements 2.0, for which the op `pow` gives x * x.

    NumPy takes that short cut for an exponent without axes alone.
    """
    return issubclass(type(exponent), np.ndarray) and bool(exponent.ndim and (exponent == 2).any())


def loop_attribute(ufunc: np.ufunc, name: str, operands: Sequence[Any], outs: Any = ()) -> Any:
    """Return the attribute `loop` by which an op has the bits of a ufunc's call; None if it cannot.

    The operands of the op are those of the ufunc, cast to the dtypes of NumPy's loop. The op then
    cannot have the loop where NumPy would cast in buffers, and so take other steps. `name` is the
    name of the ufunc as the op names it.
    """
    dtypes = loop_dtypes(ufunc, operands)
    if dtypes is None or not all(dtype.kind in "iu" or dtype.char in "efdFD" for dtype in dtypes):
        return None
    cast_operands = [_as_cast(x, dtype) for x, dtype in zip(operands, dtypes, strict=False)]
    shape = np.broadcast_shapes(*map(np.shape, operands))
    into = outs[0] if outs else None
    is_plain = into is None or (into.shape == shape and into.dtype == dtypes[-1])
    views = [into] if is_plain and into is not None and _is_aligned(into) else []
    steps = inner_steps(ufunc, operands, dtypes, outs)
    if steps != inner_steps(ufunc, cast_operands, dtypes, views):
        return None
    return name, tuple(map(strides_of, cast_operands)), tuple(map(strides_of, views))


def _as_cast(value: Any, dtype: np.dtype[Any]) -> Array:
    """Return an array in the layout that a cast of the value has; its elements mean nothing."""
    array = np.asarray(value)
    if array.dtype == dtype and array.dtype.isnative and _is_aligned(array):
        return array
    return np.empty_like(array, dtype, subok=False)


def _is_aligned(array: Array) -> bool:
    """Whether an array is aligned, with elements whole steps apart."""
    return array.flags.aligned and not any(step % array.itemsize for step in array.strides)


def run_loop(loop: Any, *operands: Array) -> Array:
    """Return the result of NumPy's loop by the attribute `loop` of an op on operands of its dtypes.

    The last operands of the op are those of the ufunc.
    """
    name, layouts, outs = loop
    ufunc = ufunc_of(name)
    values = operands[len(operands) - ufunc.nin :]
    pairs = zip(values, layouts, strict=True)
    arrays = [
        _of_one(x, *strides) if x.shape == (1,) else laid_out(x, strides) for x, strides in pairs
    ]
    if not outs:
        return ufunc(*arrays)
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    dtype = ufunc.resolve_dtypes((*[x.dtype for x in arrays], None))[-1]
    return ufunc(*arrays, out=laid_out(np.zeros(shape, dtype), outs[0]))


def _of_one(array: Array, step: int) -> Array:
    """Return a vector of one element with some step."""
    memory = np.zeros(array.nbytes, np.uint8)
    vector: Array = np.ndarray((1,), array.dtype, memory.data, 0, (step * array.itemsize,))
    vector[...] = array
    return vector


class LoopCall:
    """The function of an op `call` in place of an op with an attribute `loop`."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop

    def __call__(self, *operands: Array) -> tuple[Array]:
        """Return the result, in row-major order."""
        with np.errstate(all="ignore"):
            return (np.asarray(run_loop(self.loop, *operands), order="C"),)


def call_attributes(ufunc: np.ufunc, operands: Sequence[Any], outs: Sequence[Any] = ()) -> Any:
    """Return the attributes of the op `call` that calls a ufunc on arrays as they lie in memory.

    The operands of the op are the arrays and NumPy scalars among `operands`; the others are Python
    numbers. `outs` are arrays that lie as the results do, or None in place of a new array.
    """
    args: list[Any] = []
    places = count()
    for value in operands:
        if type(value) in _NUMBERS:
            args.append(value)
        else:
            layout = MemoryLayout.of(value) if type(value) is np.ndarray else None
            args.append(OperandPlace(next(places), layout))
    shape = np.broadcast_shapes(*map(np.shape, operands))
    dtypes = (loop_dtypes(ufunc, operands) or ())[ufunc.nin :]
    pairs = zip(outs, dtypes, strict=False)
    kwargs = {"out": tuple([_output(view, shape, dtype) for view, dtype in pairs])} if outs else {}
    types = [TensorType(DType.from_numpy(dtype), shape) for dtype in dtypes]
    function = NumPyCall(ufunc, args, kwargs, raises=False)
    return {"callee": Callee(f"numpy.{ufunc.__name__}", function), "types": TupleType(types)}


_NUMBERS = (bool, int, float, complex)


def _output(view: Any, shape: tuple[int, ...], dtype: Any) -> NewArrayPlace | None:
    """Return the place of a result that lies as `view` does; None for a new array."""
    if type(view) is not np.ndarray or view.shape != shape or view.dtype != dtype:
        return None  # NumPy casts results in buffers
    return NewArrayPlace(MemoryLayout.of(view), shape, dtype)


def inner_steps(
    ufunc: np.ufunc, operands: Sequence[Any], dtypes: Sequence[Any], outs: Sequence[Any] = ()
) -> set[Steps]:
    """Return the steps of operands and results in the inner loops of a call of a ufunc.

    `dtypes` are those of the loop, of operands and results.
    """
    arrays: list[Any] = [np.asarray(value) for value in operands]
    results: list[Any] = list(outs) or [None] * ufunc.nout
    if any(map(has_odd_step, arrays)) and all(x.size == 1 and x.ndim < 2 for x in arrays):
        return {(*[_step_of_one(x) for x in arrays], *[_step_of_one(x) for x in results])}
    flags = [["readonly", "aligned"]] * len(arrays)
    # Arrays of out= are read, because the iterator would write its buffers to them.
    flags += [["writeonly", "allocate"] if x is None else ["readonly", "aligned"] for x in results]
    kinds = ["external_loop", "buffered", "grow_inner", "delay_bufalloc", "zerosize_ok"]
    make: Any = np.nditer
    it = make([*arrays, *results], kinds, flags, [*dtypes], order="K", casting="unsafe")
    it.reset()
    steps_of_chunks: set[Steps] = set()
    for chunk in it:
        steps = [_step(part) for part in chunk]
        pairs = zip(steps[ufunc.nin :], results, strict=True)
        news = [1 if x is None else step or 1 for step, x in pairs]
        steps_of_chunks.add((*steps[: ufunc.nin], *news))
    return steps_of_chunks


def _step_of_one(array: Array | None) -> int:
    """Return the step that NumPy passes to a loop of one element."""
    if array is None or not array.ndim:
        return int(array is None)
    return array.strides[0] // array.itemsize


def _step(part: Array) -> int:
    return part.strides[0] // part.itemsize if part.size > 1 else 0


def loop_dtypes(ufunc: np.ufunc, operands: Sequence[Any]) -> tuple[np.dtype[Any], ...] | None:
    """Return the dtypes of the loop of a ufunc; None if it has none for the operands."""
    types: Any = [type(v) if type(v) in _NUMBERS[1:] else np.asarray(v).dtype for v in operands]
    try:
        return ufunc.resolve_dtypes((*types, *[None] * ufunc.nout))
    except TypeError:
        return None


@cache
def computes_halves_in_float32(ufunc: np.ufunc) -> bool:
    """Whether the float16 loop of a ufunc has the bits of its float32 loop, narrow once, as ops.

    The experiment takes all numbers of float16, for two operands in a random order.
    """
    if f"{'e' * ufunc.nin}->" not in [loop.rstrip("e?") for loop in ufunc.types]:
        return True
    random = np.random.default_rng(0)
    halves = [_random_vector(np.dtype(np.float16), random) for _ in range(ufunc.nin)]
    with np.errstate(all="ignore"):
        results: Any = _several(ufunc(*halves))
        wide = _several(ufunc(*[x.astype(np.float32) for x in halves]))
        narrow = [x.astype(y.dtype) for x, y in zip(wide, results, strict=True)]
    return _same_bits(results, tuple(narrow))


@cache
def _is_as_contiguous(ufunc: np.ufunc, codes: str, steps: Steps) -> bool:
    """Whether a ufunc has the bits of its contiguous loop at some steps: an experiment."""
    random = np.random.default_rng(0)
    vectors = [_random_vector(np.dtype(code), random) for code in codes]
    laid = [_at_step(x, step) for x, step in zip(vectors, steps, strict=False)]
    copies = [x if step else x[0] for x, step in zip(vectors, steps, strict=False)]
    with np.errstate(all="ignore"):
        expected: Any = ufunc(*copies)
        if "e" in codes:
            expected = _in_halves(ufunc, copies, expected)
        outs = zip(_several(expected), steps[ufunc.nin :], strict=True)
        return _same_bits(
            ufunc(*laid, out=tuple([_at_step(x, step) for x, step in outs])), expected
        )


def _in_halves(ufunc: np.ufunc, copies: Sequence[Any], halves: Any) -> Any:
    """Return the results that a ufunc of float16 has by way of float32, in the dtypes of halves."""
    wide = [x.astype(np.float32) if x.dtype.char == "e" else x for x in copies]
    pairs = zip(_several(ufunc(*wide)), _several(halves), strict=True)
    results = tuple([x.astype(half.dtype) for x, half in pairs])
    return results if isinstance(halves, tuple) else results[0]


def _random_vector(dtype: np.dtype[Any], random: np.random.Generator) -> Array:
    """Return a vector of numbers of all sizes, and zeros of both signs; all numbers of float16."""
    if dtype.char == "e":
        halves = random.permutation(np.arange(_TRIALS, dtype=np.uint16)).view(dtype)
        return np.where(random.random(_TRIALS) < _ZEROS, np.copysign(dtype.type(0), halves), halves)
    parts = [
        random.standard_normal(_TRIALS) * np.exp2(random.integers(-6, 7, _TRIALS)) for _ in "ri"
    ]
    if dtype.kind == "c":
        return (parts[0] + 1j * parts[1]).astype(dtype)
    parts[0][::2] = random.uniform(-1, 1, _TRIALS // 2)  # in the domain of arcsin, say
    parts[0][random.random(_TRIALS) < _ZEROS] *= 0
    return (np.abs(parts[0]) if dtype.kind == "u" else parts[0]).astype(dtype)


def _at_step(values: Array, step: int) -> Array:
    """Return a vector of the values with a step; of the first value for the step 0."""
    if not step or not values.ndim:
        return np.broadcast_to(values.flat[0], values.shape)
    memory = np.empty(len(values) * abs(step), values.dtype)
    vector = memory[::step]
    vector[...] = values
    return vector


def _several(results: Any) -> Sequence[Any]:
    return cast("Any", results) if isinstance(results, tuple) else (results,)


def _same_bits(results: Any, expected: Any) -> bool:
    """Whether two results of a ufunc are equal, any NaN to any NaN, and 0.0 is not -0.0."""
    pairs = zip(_several(results), _several(expected), strict=True)
    return all(_is_equal(a, b) for a, b in pairs)


def _is_equal(a: Any, b: Any) -> bool:
    if a.dtype.kind == "c":
        return _is_equal(a.real, b.real) and _is_equal(a.imag, b.imag)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    signs = np.signbit(a) == np.signbit(b)
    return bool(np.all((a == b) & signs | (a != a) & (b != b)))
