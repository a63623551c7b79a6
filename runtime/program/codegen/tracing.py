"""Elementwise kernels taken apart into ufunc calls, each of which writes where it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

Storage: TypeAlias = "np.dtype[Any]"


class UfuncStep(NamedTuple):
    """One call, `function(*args, out)`.

    An arg is an index and the dtype as which it is read: from 0 on those of the operands, then
    of the results of the steps; below 0 of the constants.
    """

    function: Callable[..., Any]
    args: tuple[tuple[int, Storage], ...]
    dtype: Storage


class KernelTrace(NamedTuple):
    """What a kernel does with its operands, and which value is its result.

    `plain`: it is one step, on all operands as they are.
    """

    steps: tuple[UfuncStep, ...]
    result: tuple[int, Storage]
    constants: tuple[NDArray[Any], ...]
    plain: bool


class UntraceableError(Exception):
    """A kernel does something that is no elementwise ufunc call."""


def assign(source: Any, out: Any) -> None:
    """Convert by NumPy's own cast."""
    out[...] = source


def select(condition: Any, x: Any, y: Any, out: Any) -> None:
    """np.where into an array that is none of the operands."""
    out[...] = y
    np.copyto(out, x, where=condition)


class TracedKernel(NDArrayOperatorsMixin):
    """An operand, or a result, of a kernel being traced: NumPy functions on it are recorded."""

    def __init__(self, tracer: Tracer, index: int, dtype: Storage) -> None:
        self.tracer, self.index, self.dtype = tracer, index, dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        if method != "__call__" or ufunc.nout != 1 or settings.keys() - {"casting"}:
            raise UntraceableError
        operand_dtypes: list[Any] = [
            type(operand) if type(operand) in (int, float) else operand.dtype for operand in inputs
        ]
        *target_dtypes, result = ufunc.resolve_dtypes((*operand_dtypes, None))
        args = [
            self.tracer.read(operand, dtype)
            for operand, dtype in zip(inputs, target_dtypes, strict=True)
        ]
        return self.tracer.emit(ufunc, args, result)

    def __array_function__(self, function: Any, _: Any, args: Any, settings: Any) -> Any:
        if function is not np.where or settings or len(args) != 3:
            raise UntraceableError
        return self.tracer.where(*args)

    def copy(self) -> TracedKernel:
        """Itself: nothing that is traced writes to its operands."""
        return self

    def view(self, dtype: Any) -> TracedKernel:
        """The same bits as another dtype of the same width."""
        return TracedKernel(self.tracer, self.index, np.dtype(dtype))

    def astype(self, dtype: Any) -> TracedKernel:
        """Converted by NumPy's own cast."""
        return self.tracer.emit(assign, [self], np.dtype(dtype))


class Tracer:
    """A recording. `bits` selects by masks, in five passes that do not branch."""

    def __init__(self, dtypes: Sequence[Storage], bits: bool) -> None:
        self.operands = [TracedKernel(self, i, dtype) for i, dtype in enumerate(dtypes)]
        self.bits = bits
        self.steps: list[UfuncStep] = []
        self.constants: list[NDArray[Any]] = []

    def emit(self, function: Any, args: Sequence[TracedKernel], dtype: Storage) -> TracedKernel:
        """The result of a step."""
        operands_read = tuple([(arg.index, arg.dtype) for arg in args])
        self.steps.append(UfuncStep(function, operands_read, dtype))
        return TracedKernel(self, len(self.operands) + len(self.steps) - 1, dtype)

    def read(self, value: Any, dtype: Storage) -> TracedKernel:
        """A value as an operand of that dtype; a scalar becomes a constant."""
        if getattr(value, "dtype", dtype) != dtype:
            raise UntraceableError
        if isinstance(value, TracedKernel):
            return value
        if np.ndim(value):
            raise UntraceableError
        self.constants.append(np.asarray(value, dtype))
        return TracedKernel(self, -len(self.constants), dtype)

    def where(self, condition: Any, x: Any, y: Any) -> TracedKernel:
        """np.where of one dtype: y ^ ((x ^ y) & mask), or `select` where no mask is as wide."""
        dtype: Storage = next(
            operand.dtype for operand in (x, y, condition) if isinstance(operand, TracedKernel)
        )
        condition = self.read(condition, np.dtype(bool))
        x, y = self.read(x, dtype), self.read(y, dtype)
        if not self.bits or dtype.itemsize > 8:
            return self.emit(select, [condition, x, y], dtype)
        width = np.dtype(f"i{dtype.itemsize}")
        mask = -condition.view(np.int8)
        mask = mask if width.itemsize == 1 else mask.astype(width)
        x, y = x.view(width), y.view(width)
        return (((x ^ y) & mask) ^ y).view(dtype)

    def finish(self, result: TracedKernel) -> KernelTrace:
        """The trace that ends in a value."""
        all_operands = tuple([(operand.index, operand.dtype) for operand in self.operands])
        plain = [step.args for step in self.steps] == [all_operands] and (
            result.index,
            result.dtype,
        ) == (len(self.operands), self.steps[0].dtype)
        end = result.index, result.dtype
        return KernelTrace(tuple(self.steps), end, tuple(self.constants), plain)


def trace(
    kernel: Callable[..., Any], dtypes: Sequence[Storage], result: Storage, bits: bool
) -> KernelTrace:
    """What a kernel does with operands of some dtypes; one step where it cannot be taken apart."""
    tracer = Tracer(dtypes, bits)
    try:
        result_ = kernel(*tracer.operands)
    except (UntraceableError, AttributeError, TypeError):
        result_ = None
    if isinstance(result_, TracedKernel) and result_.dtype == result:
        return tracer.finish(result_)
    whole = Tracer(dtypes, bits)
    return whole.finish(whole.emit(Whole(kernel), whole.operands, result))


class Whole:
    """A kernel as one step: it makes an array, which is then copied."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel

    def __call__(self, *arrays: Any) -> None:
        """Compute, and copy into the last of the arrays."""
        *operands, out = arrays
        out[...] = self.kernel(*operands)
