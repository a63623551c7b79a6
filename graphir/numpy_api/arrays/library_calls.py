"""Calls of NumPy's own functions in a trace, where no op computes a function with NumPy's bits.

The function becomes a `call` in the graph, which runs NumPy itself on the operands as they lie in
memory. NumPy tells the dtypes, shapes and layouts of the results: the same call runs on stand-ins,
arrays of the operands' dtypes, shapes and strides. Two stand-ins of other values must give results
of the same types, and each run checks them. What a graph cannot do is refused: results whose types
depend on values, functions of the user, and results that share memory with operands.

A call may raise an error that depends on values, such as that of a singular matrix. The trace goes
on as if it had raised none. Where the program handles the error, or has written to an argument
before, `jit` runs the program itself when the error comes; other traces refuse the call.
"""

from __future__ import annotations

import dis
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from sys import _getframe as getframe  # pyright: ignore[reportPrivateUsage]
from types import CodeType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType
from graphir.errors import GraphError, MissingOpError, shortened
from graphir.hints import Array
from graphir.ir.symbol import Symbol
from graphir.location import is_internal
from graphir.numpy_api.arrays.boundary import PLAIN, depends_on_values, is_static
from graphir.numpy_api.arrays.call_operands import memory_among
from graphir.numpy_api.arrays.element_access import WRITING
from graphir.numpy_api.arrays.memory import (
    PYTHON_NUMBERS,
    ArrayValue,
    Cell,
    ScalarValue,
    TraceMemory,
    like_numpy,
    tracing_with,
)
from graphir.numpy_api.dispatch import OF_UNKNOWN_SIZE
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.ops import control
from graphir.ops.control import Callee
from graphir.ops.types import TensorType, TupleType
from graphir.semantics.library_calls import (
    Function,
    Keywords,
    MemoryLayout,
    NumPyCall,
    OperandPlace,
    leaves,
    mapped,
    new_leaves,
)

_OF_VALUES = OF_UNKNOWN_SIZE | {
    *("eig", "eigvals", "roots", "poly", "real_if_close", "min_scalar_type"),
    *("bincount", "delete", "insert", "repeat", "resize", "mask_indices", "ediff1d"),
}
"""The functions whose results have dtypes or shapes that depend on values."""
_USUALLY_TYPED = frozenset(("lstsq",))
"""The functions whose results have other types for some values: the rank of a matrix, say."""
_OF_MEMORY = frozenset(("shares_memory", "may_share_memory", "byte_bounds", "as_strided"))
"""The functions whose results depend on where arrays lie."""
_MODULES = ("numpy", "numpy.linalg", "numpy.fft")
_RAISING = frozenset(
    (
        *("percentile", "quantile", "nanpercentile", "nanquantile", "digitize", "histogram"),
        *("histogram2d", "histogramdd", "choose", "take", "take_along_axis", "polyfit", "average"),
        *("ravel_multi_index", "unravel_index", "power", "interp", "nanargmin", "nanargmax"),
        *("geomspace", "put", "put_along_axis"),
    )
)
"""The functions outside of np.linalg that raise errors for some values."""
_NEVER_RAISING = frozenset(("norm", "vector_norm", "matrix_norm", "vecdot", "cross", "outer"))
_COSTLY = 10**6
"""Above this number of elements a function of np.linalg runs on one stand-in only."""


class _Untraceable(Exception):  # noqa: N818 -- no error leaves
    """An argument or a result for which a graph has no value."""


def of_call(
    function: Function, method: str, args: Sequence[Any], kwargs: Keywords
) -> tuple[Any] | None:
    """Return the result of a call of NumPy's function in a tuple; None where it cannot be called.

    `method` is that of a ufunc; `__call__` for functions. Raises MissingOpError where the program
    handles an error that the function may raise.
    """
    memory = memory_among([args, kwargs])
    name = _name_of(function, method, args, kwargs)
    if name is None:
        return None
    try:
        call = _Call(
            memory, function if method == "__call__" else getattr(function, method), args, kwargs
        )
        is_costly = function.__module__ == "numpy.linalg" and call.size > _COSTLY
        others = [] if is_costly else [call.result_of(2)]
        result = call.result_of(1)
        if any(_types_of(other) != _types_of(result) for other in others) or not call.fits(result):
            return None
    except np.linalg.LinAlgError as error:
        if depends_on_values(error):
            return None
        raise like_numpy(GraphError(str(error)), type(error)) from None
    except Exception:  # NumPy's own, which an op has raised for the same operands
        return None
    raises, usual = _may_raise(function, method), None
    if function.__name__ in _USUALLY_TYPED:
        if not _can_run(memory):
            return None
        usual = [(leaf.dtype, leaf.shape) for leaf in leaves(result)]
    is_handled = usual is not None or (raises and _is_handled(memory, name))
    return (call.emitted(name, result, (raises, is_handled, usual)),)


def _name_of(function: Function, method: str, args: Sequence[Any], kwargs: Keywords) -> str | None:
    """Return the name of a function that a graph may call; None for other functions."""
    name = getattr(function, "__name__", "")
    if isinstance(function, np.ufunc):
        if getattr(np, name, getattr(np.linalg, name, None)) is not function:
            return None  # a ufunc that calls a Python function, say
        if method == "__call__":
            out = kwargs.get("out")
            whole = kwargs.get("where", True) is True
            return f"numpy.{name}" if whole or (out and all(x is not None for x in out)) else None
        return f"numpy.{name}.{method}" if method in _METHODS else None
    module = str(getattr(function, "__module__", ""))
    if module not in _MODULES or name in _OF_VALUES or name in _OF_MEMORY:
        return None
    if (name == "where" and len(args) < 3) or kwargs.get("overwrite_input"):
        return None
    by_rule = any(isinstance(value, str) for value in (*args, *kwargs.values()))
    if name.startswith("save") or (name.startswith("histogram") and by_rule):
        return None  # files, and numbers of bins that depend on values
    return f"{module}.{name}"


_METHODS = frozenset(("reduce", "accumulate", "reduceat", "outer", "at"))


def _may_raise(function: Function, method: str) -> bool:
    name = function.__name__
    if method in ("reduceat", "at"):
        return True
    if function.__module__ == "numpy.linalg":
        return name not in _NEVER_RAISING
    return name in _RAISING


class _Call:
    """A call of a function on stand-ins of the operands that a trace has."""

    def __init__(
        self, memory: TraceMemory, function: Any, args: Sequence[Any], kwargs: Keywords
    ) -> None:
        self.memory, self.function = memory, function
        self.values: list[Any] = []
        """The arrays and scalars of the trace, by the indices of their places."""
        self.stand_ins: list[Any] = []
        self._reads: list[Callable[[], Symbol]] = []
        self._examples: list[tuple[Any, bool]] = []
        self._places: list[OperandPlace] = []
        self._views: dict[Any, OperandPlace] = {}
        settings = {key: value for key, value in kwargs.items() if key != "out"}
        written = args[:1] if function.__name__ == "at" or function in WRITING else ()
        self.args, self.kwargs = mapped(self._operand, [[*args[len(written) :]], settings])
        self.args[:0] = map(self._output, written)
        if kwargs.get("out") is not None:
            self.kwargs["out"] = mapped(self._output, kwargs["out"])

    @property
    def size(self) -> int:
        """The number of elements of the largest operand."""
        return max(np.size(example) for example, _ in self._examples)

    def _operand(self, value: Any) -> Any:
        """Return the place of an array or scalar; other values of a usual kind stay."""
        if isinstance(value, ArrayValue):
            key = id(value.cell), value.prefix, _memory_of(value.plain)
            if key not in self._views:
                self._views[key] = self._place(value, value.read, value.plain, value.is_known)
            return self._views[key]
        if isinstance(value, ScalarValue):
            if value.number_class is not None:
                raise _Untraceable
            return self._place(value, value.read, value.symbol.dtype.to_numpy().type(1))
        kind: Any = cast("object", type(value))
        if kind is TracedNumber:
            return concrete(value)
        if kind is np.ndarray:
            graph = self.memory.graph
            return self._place(value, lambda: graph.entering(value), value, True)
        if not is_static(value):
            raise _Untraceable
        return value

    def _output(self, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, ArrayValue):
            raise _Untraceable
        value.check_writable()
        if any(isinstance(x, ArrayValue) and x.cell is value.cell for x in self.values):
            raise _Untraceable  # an overlap with an operand
        return self._place(value, value.read, value.plain, is_output=True)

    def _place(
        self,
        value: ArrayValue | ScalarValue,
        read: Callable[[], Symbol],
        example: NDArray[Any] | np.generic,
        is_constant: bool = False,
        is_output: bool = False,
    ) -> OperandPlace:
        if example.dtype.kind not in "biufc" or not example.dtype.isnative:
            raise _Untraceable
        layout = MemoryLayout.of(example) if type(example) is np.ndarray else None
        place = OperandPlace(len(self.values), layout, is_output)
        self.values.append(value)
        self._reads.append(read)
        self._examples.append((example, is_constant))
        self._places.append(place)
        return place

    def result_of(self, seed: int) -> Any:
        """Return the function's result for stand-ins; each seed stands for other values."""
        self.stand_ins = [_stand_in(x, seed, is_constant) for x, is_constant in self._examples]
        for place in self._places:
            if place.layout is not None:
                stand_in = place.layout.laid_out(self.stand_ins[place.index], copies=True)
                stand_in.setflags(write=place.is_output)
                self.stand_ins[place.index] = stand_in

        def argument(leaf: Any) -> Any:
            return self.stand_ins[leaf.index] if type(leaf) is OperandPlace else leaf

        args, kwargs = mapped(argument, [self.args, self.kwargs])
        with tracing_with(None), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.function(*args, **kwargs)

    def fits(self, result: Any) -> bool:
        """Whether a graph has values for all results, none of which shares memory with others."""
        news = new_leaves(result, self.stand_ins)
        arrays: list[Any] = [x for x in self.stand_ins if isinstance(x, np.ndarray)]
        for leaf in news:
            if not _is_usual(leaf) or any(np.may_share_memory(leaf, array) for array in arrays):
                return False
            if type(leaf) is np.ndarray:
                arrays.append(leaf)
        return bool(news) or any(place.is_output for place in self._places)

    def emitted(self, name: str, result: Any, outcomes: tuple[Any, ...]) -> Any:
        """Add the call to the graph, and return its results as values of the trace.

        `outcomes` are the last arguments of NumPyCall.
        """
        self.memory.check()
        news = new_leaves(result, self.stand_ins)
        outputs = [self.values[place.index] for place in self._places if place.is_output]
        types = [TensorType(DType.from_numpy(np.asarray(x).dtype), np.shape(x)) for x in news]
        types += [TensorType(x.element, x.dims) for x in outputs]
        function = NumPyCall(self.function, self.args, self.kwargs, *outcomes)
        attrs = {
            "callee": Callee(name, function),
            "types": TupleType(types),
            "parameters": _text_of(self.args, self.kwargs),
        }
        arguments = tuple([read() for read in self._reads])
        parts = iter(control.parts(self.memory.graph.emit(control.call, arguments, attrs)))
        values = {id(leaf): self._value(leaf, next(parts)) for leaf in news}
        for into in outputs:
            into.write(next(parts))
        values |= {id(x): value for x, value in zip(self.stand_ins, self.values, strict=True)}
        return mapped(lambda leaf: values.get(id(leaf)), result)

    def _value(self, leaf: Any, symbol: Symbol) -> Any:
        memory = self.memory
        if type(leaf) is not np.ndarray:
            scalar: Any = memory.value_of(symbol, scalar=True)
            scalar.number_class = None if isinstance(leaf, np.generic) else type(leaf)
            return scalar
        if leaf.flags.c_contiguous and leaf.flags.writeable:
            return memory.value_of(symbol)
        return memory.array(Cell(memory, leaf, symbol))


def _stand_in(example: NDArray[Any] | np.generic, seed: int, is_constant: bool) -> Any:
    """Return an array or scalar of the type of an example, with its values if they are known.

    Other values suit most functions: matrices are positive definite, vectors grow, fractions lie
    between 0 and 1, and integers are indices.
    """
    dtype: Any = example.dtype
    shape: tuple[int, ...] = example.shape
    if is_constant:
        return np.array(example)
    if type(example) is not np.ndarray:
        return dtype.type(1 / seed if dtype.kind in "fc" else 2 - seed)
    if len(shape) > 1:
        return np.broadcast_to(np.eye(shape[-2], shape[-1]) * seed, shape).astype(dtype)
    if dtype.kind in "fc":
        return (np.linspace(0.1, 0.9, example.size) ** seed).astype(dtype).reshape(shape)
    return np.full(shape, seed - 1, dtype)


def _memory_of(array: Array) -> Any:
    return array.__array_interface__["data"][0], array.strides, array.shape


def _is_usual(value: Any) -> bool:
    """Whether a graph has the type of a result."""
    kind: Any = cast("object", type(value))
    if kind in PYTHON_NUMBERS:
        return True
    if kind is not np.ndarray and not issubclass(kind, np.generic):
        return False
    dtype: Any = value.dtype
    return dtype.kind in "biufc" and dtype.isnative and dtype.char not in "gG"


def _types_of(result: Any) -> Any:
    return [(type(x), getattr(x, "dtype", None), np.shape(x)) for x in leaves(result)]


def _text_of(args: Sequence[Any], kwargs: Keywords) -> str:
    """Return the arguments of a call that are no operands, as text."""
    texts = [repr(x) for x in args if type(x) in PLAIN]
    texts += [f"{key}={x!r}" for key, x in kwargs.items() if type(x) in PLAIN]
    return shortened(", ".join(texts), 200)


# -- errors that depend on values


def _is_handled(memory: TraceMemory, name: str) -> bool:
    """Whether NumPy's error would change what the program does, or has written to an argument.

    Then `jit` runs the program itself. Raises MissingOpError in other traces.
    """
    can_run = _can_run(memory)
    if any(cell.version for cell in memory.arguments):
        if can_run:
            return True
        raise MissingOpError(
            f"{name} may raise an error after the function has written to an argument",
            fix="call it before the writes, or return new arrays",
        )
    frame = getframe(2)
    while frame is not None and frame.f_globals.get("__name__") != _ROOT:
        if not is_internal(frame) and handles_errors(frame.f_code, frame.f_lasti):
            if can_run:
                return True
            raise MissingOpError(
                f"whether {name} raises an error depends on values, and the program handles it",
                fix="handle it outside of the traced function",
            )
        frame = frame.f_back
    return False


def _can_run(memory: TraceMemory) -> bool:
    """Whether `jit` traces a function under the rules by which the function itself computes."""
    graph = memory.graph
    return memory.runs_here and graph.rules.name == "numpy" and graph.functions == "numpy"


_ROOT = "graphir.numpy_api.trace"


@lru_cache(1024)
def handles_errors(code: CodeType, offset: int) -> bool:
    """Whether a `try` or `with` statement around an instruction may handle its error."""
    entries: list[Any] = cast("Any", dis)._parse_exception_table(code)
    instructions = {instruction.offset: instruction for instruction in dis.get_instructions(code)}
    following = dict(zip(instructions, [*instructions.values()][1:], strict=False))
    while True:
        entry = next((x for x in entries if x.start <= offset < x.end), None)
        if entry is None:
            return False
        offset = entry.target
        if instructions[offset].opname != "PUSH_EXC_INFO":
            continue  # the end of a handler, or of a generator
        handler = following[offset]
        if handler.opname != "WITH_EXCEPT_START":
            return True
        line = handler.positions and handler.positions.lineno
        statement = [x for x in following.values() if x.positions and x.positions.lineno == line]
        names = {x.argval for x in statement if isinstance(x.argval, str)}
        managers = [x for x in statement if x.opname == "WITH_EXCEPT_START"]
        if len(managers) > 1 or not names & _WITHOUT_HANDLER:
            return True


_WITHOUT_HANDLER = frozenset(("errstate", "catch_warnings", "printoptions", "nullcontext"))
"""The context managers that let errors pass."""
