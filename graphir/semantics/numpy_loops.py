"""The inner loops that NumPy chooses for a ufunc, by the strides of its operands.

NumPy has several loops for many functions of floats: vectors of neighbouring elements, strided
ones, and one element at a time where a stride is negative, say. They round differently, and which
there are depends on the processor. NumPy's own iterator tells the strides that a loop gets, and an
experiment tells whether a function has other bits at these strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType
from graphir.ops.control import Callee
from graphir.ops.types import TensorType, TupleType
from graphir.semantics.library_calls import (
    MemoryLayout,
    NewArrayPlace,
    NumPyCall,
    OperandPlace,
)

Array = NDArray[Any]
Steps: TypeAlias = tuple[int, ...]
"""The distance from an element to the next, in elements, of each operand of an inner loop."""

_TRIALS = 2**16
_ZEROS = 1 / 8
"""The share of zeros, of which loops of maximum, say, choose one or the other sign."""


def has_contiguous_bits(ufunc: np.ufunc, operands: Sequence[Any], outs: Sequence[Any] = ()) -> bool:
    """Whether a ufunc gives the bits that it gives of contiguous copies of the operands.

    Operands are arrays, whose elements the function does not read, or NumPy scalars or numbers.
    `outs` are the arrays of `out=`, or None in place of a new array.
    """
    if ufunc.signature or all(map(_is_in_order, (*operands, *outs))):
        return True
    dtypes = loop_dtypes(ufunc, operands)
    if dtypes is None or not any(dtype.kind in "fc" for dtype in dtypes):
        return True
    codes = "".join([dtype.char for dtype in dtypes[: ufunc.nin]])
    return all(
        _is_as_contiguous(ufunc, codes, steps)
        for steps in inner_steps(ufunc, operands, dtypes, outs)
        if any(step not in (0, 1) for step in steps)
    )


def _is_in_order(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or bool(
        value.flags.c_contiguous and value.flags.aligned
    )


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
        outs = zip(_several(expected), steps[ufunc.nin :], strict=True)
        return _same_bits(
            ufunc(*laid, out=tuple([_at_step(x, step) for x, step in outs])), expected
        )


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
