"""Tracing of elementwise kernels into ufunc calls that write into given memory.

The tracer calls a kernel with placeholder operands. NumPy's protocols `__array_ufunc__` and
`__array_function__` hand each ufunc call of the kernel to the tracer, which records a step. A
kernel that does anything else stays whole: its trace is one step that copies the kernel's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

Storage: TypeAlias = "np.dtype[Any]"

Traceable: TypeAlias = "TracedKernel | NDArray[Any] | np.generic | bool | int | float"
"""An operand of a kernel while it is traced."""


class UfuncStep(NamedTuple):
    """One call, `function(*args, out)`, whose result has `dtype`.

    Each arg is an index and the dtype in which the call reads the value. Indices from 0 number the
    operands and then the results of the steps; index -1 - i is constant i.
    """

    function: Callable[..., Any]
    args: tuple[tuple[int, Storage], ...]
    dtype: Storage


class KernelTrace(NamedTuple):
    """The steps of a kernel, the index and dtype of its result, and its constants.

    `plain` is whether the kernel is a single step that reads all operands in order in their own
    dtypes.
    """

    steps: tuple[UfuncStep, ...]
    result: tuple[int, Storage]
    constants: tuple[NDArray[Any], ...]
    plain: bool


class UntraceableError(Exception):
    """Raised if a kernel does something other than elementwise ufunc calls."""


def assign(source: NDArray[Any], out: NDArray[Any]) -> None:
    """Convert `source` to the dtype of `out` by NumPy's own cast, and store it in `out`."""
    out[...] = source


def select(condition: NDArray[Any], x: NDArray[Any], y: NDArray[Any], out: NDArray[Any]) -> None:
    """Store np.where(condition, x, y) in `out`, which may be y but no other operand.

    np.putmask takes the same time for all masks, np.copyto three times as long for random ones; but
    np.putmask does not broadcast.
    """
    if out is not y:
        out[...] = y
    if x.shape == condition.shape == out.shape:
        np.putmask(out, condition, x)
    else:
        np.copyto(out, x, where=condition)


def real_part(source: Any, out: NDArray[Any]) -> None:
    """Store the real parts of complex numbers in `out`."""
    out[...] = source.real


def imaginary_part(source: Any, out: NDArray[Any]) -> None:
    """Store the imaginary parts of complex numbers in `out`."""
    out[...] = source.imag


class TracedKernel(NDArrayOperatorsMixin):
    """An operand or a result of a kernel during tracing; NumPy functions on it become steps."""

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

    def __array_function__(
        self, function: Callable[..., Any], _: Any, args: Sequence[Any], settings: Mapping[str, Any]
    ) -> Any:
        if function is not np.where or settings or len(args) != 3:
            raise UntraceableError
        return self.tracer.where(*args)

    def copy(self) -> TracedKernel:
        """Return the value itself, since no traced function writes to its operands."""
        return self

    @property
    def real(self) -> TracedKernel:
        """The real parts of complex numbers."""
        return self._part(real_part)

    @property
    def imag(self) -> TracedKernel:
        """The imaginary parts of complex numbers."""
        return self._part(imaginary_part)

    def _part(self, function: Callable[..., None]) -> TracedKernel:
        if self.dtype.kind != "c":
            raise UntraceableError
        return self.tracer.emit(function, [self], np.dtype(f"f{self.dtype.itemsize // 2}"))

    def view(self, dtype: DTypeLike) -> TracedKernel:
        """Return the same bits read as another dtype of the same width."""
        return TracedKernel(self.tracer, self.index, np.dtype(dtype))

    def astype(self, dtype: DTypeLike) -> TracedKernel:
        """Return the value converted by NumPy's own cast."""
        return self.tracer.emit(assign, [self], np.dtype(dtype))


class Tracer:
    """The recorder of one trace.

    With `bits`, np.where becomes a selection by masks: five ufunc calls without branches.
    """

    def __init__(self, dtypes: Sequence[Storage], bits: bool) -> None:
        self.operands = [TracedKernel(self, i, dtype) for i, dtype in enumerate(dtypes)]
        self.bits = bits
        self.steps: list[UfuncStep] = []
        self.constants: list[NDArray[Any]] = []

    def emit(
        self, function: Callable[..., Any], args: Sequence[TracedKernel], dtype: Storage
    ) -> TracedKernel:
        """Append a step, and return its result."""
        operands_read = tuple([(arg.index, arg.dtype) for arg in args])
        self.steps.append(UfuncStep(function, operands_read, dtype))
        return TracedKernel(self, len(self.operands) + len(self.steps) - 1, dtype)

    def read(self, value: Traceable, dtype: Storage) -> TracedKernel:
        """Return a value as an operand of `dtype`; a scalar becomes a constant.

        Raises UntraceableError for a value of another dtype, and for an array of rank above 0.
        """
        if getattr(value, "dtype", dtype) != dtype:
            raise UntraceableError
        if isinstance(value, TracedKernel):
            return value
        if np.ndim(value):
            raise UntraceableError
        self.constants.append(np.asarray(value, dtype))
        return TracedKernel(self, -len(self.constants), dtype)

    def where(self, condition: Traceable, x: Traceable, y: Traceable) -> TracedKernel:
        """Return np.where(condition, x, y) for x and y of one dtype.

        With `bits` the result is y ^ ((x ^ y) & mask). Without, or if a value is wider than the
        widest mask (8 bytes), it is a `select` step.
        """
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
        """Return the trace whose result is a value."""
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
    """Return the trace of a kernel for operands of some dtypes and a result of dtype `result`.

    The trace is one step with the whole kernel if the kernel cannot be traced.
    """
    tracer = Tracer(dtypes, bits)
    try:
        result_ = kernel(*tracer.operands)
    except (UntraceableError, AttributeError, TypeError):
        result_ = None
    if isinstance(result_, TracedKernel) and result_.dtype == result:
        return tracer.finish(result_)
    tracer = Tracer(dtypes, bits)
    return tracer.finish(tracer.emit(Whole(kernel), tracer.operands, result))


class Whole:
    """A whole kernel as one step: it computes an array, and the step copies this array."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel

    def __call__(self, *arrays: NDArray[Any]) -> None:
        """Apply the kernel to all arrays but the last, and copy its result into the last."""
        *operands, out = arrays
        out[...] = self.kernel(*operands)
