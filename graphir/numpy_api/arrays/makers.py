"""Stand-ins for NumPy's array constructors, which make symbolic arrays in a traced function.

NumPy's protocols do not dispatch np.empty, np.array and similar constructors. During a trace, the
modules of the function's Python code therefore hold a stand-in for NumPy, and stand-ins for
np.empty and similar functions under their own names. NumPy itself stays unchanged, since compiled
code reads it too. On a thread without a trace the stand-ins behave as NumPy does.
"""

from __future__ import annotations

import builtins
import dis
import operator
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from itertools import islice
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, DTypeLike

from graphir.dtypes import DType, numpy_code
from graphir.errors import GraphError
from graphir.import_names import is_own_module
from graphir.ir.symbol import Symbol
from graphir.location import user_location
from graphir.numpy_api.arrays.boundary import at_boundary, bounded, has_settings
from graphir.numpy_api.arrays.builtin_stand_ins import BUILTIN_STAND_INS, hide_from_program
from graphir.numpy_api.arrays.call_operands import (
    array_from,
    assigned,
    broadcast,
    is_known,
    layouts,
    leaves,
    memory_among,
    plains,
)
from graphir.numpy_api.arrays.memory import (
    ArrayValue,
    LayoutUse,
    ScalarValue,
    TracedValue,
    TraceMemory,
    active_memory,
    plainly,
)
from graphir.numpy_api.interception import Interceptor
from graphir.numpy_api.reductions import UNSET
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.view_layouts import steps_between
from graphir.ops.dims import Dim, ShapeLike
from graphir.semantics.library_calls import Function, Keywords

_TRACED = Interceptor()
"""Has the stand-ins of all running traces."""

Record = Callable[..., Any]


@contextmanager
def makers_traced(function: Any) -> Generator[None]:
    """Inside the block, NumPy's constructors make symbolic arrays for traced functions."""
    while hasattr(function, "func") or hasattr(function, "__func__"):
        function = getattr(function, "func", None) or function.__func__
    with _TRACED.block():
        code = getattr(function, "__code__", None)
        names = _names_in(code)
        replace_makers(getattr(function, "__globals__", {}), names, names)
        yield


def _names_in(code: Any) -> set[str]:
    """Return the names of globals and attributes in a code object and its inner functions."""
    if not isinstance(code, CodeType):
        return set()
    return set(code.co_names).union(*map(_names_in, code.co_consts))


def replace_makers(
    space: dict[str, Any], names: Iterable[str] = (), attributes: Iterable[str] = ()
) -> None:
    """Replace NumPy and its constructors in a module's globals by stand-ins during a trace.

    The module gets stand-ins of the builtin functions among `names` too, which its code loads, and
    its code does not see `attributes` that symbolic values have beside those of NumPy's values.
    """
    if active_memory() is None and not _TRACED.is_active:
        return
    hide_from_program(attributes)
    for name, value in list(space.items()):
        stand_in = STAND_INS.get(id(value))
        if stand_in is not None:
            _TRACED.replace(space, name, stand_in)
    if space.get("__name__") != "builtins":
        for name in BUILTIN_STAND_INS.keys() & names - space.keys():
            _TRACED.add(space, name, BUILTIN_STAND_INS[name])


def is_added(space: dict[str, Any], name: str) -> bool:
    """Whether a module has a name only during the trace: the stand-in of a builtin function."""
    return _TRACED.is_added(space, name)


def original_of(value: Any) -> Any:
    """Return the NumPy function that a stand-in replaces; any other value itself."""
    return ORIGINALS.get(id(value), value)


def _maker(original: Function, record: Record) -> Any:
    @wraps(original)
    @at_boundary(f"np.{original.__name__}", original, has_settings)
    def make(*args: Any, **kwargs: Any) -> Any:
        memory = active_memory()
        if memory is None:
            return original(*args, **kwargs)
        caller = str(_getframe(2).f_globals.get("__name__", ""))
        symbolic = _has_values(args, kwargs)
        if (
            is_own_module(caller)
            or (not symbolic and (caller.partition(".")[0] == "numpy" or record in _OF_SYMBOLS))
            or kwargs.get("like") is not None
        ):
            return original(*args, **kwargs)
        places, settings = bound(original, record, args, kwargs, leading=2)
        return record(memory, original, *places, **settings)

    return make


def _record_conversion(
    memory: TraceMemory,
    original: Function,
    value: ArrayLike,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = UNSET,
    ndmin: int = 0,
) -> Any:
    """Record np.array, np.asarray and similar calls.

    The result is the same array, a copy, a cast, or the array of a list. New axes lie in front.
    """
    result = _of_value(memory, original, value, dtype, order, copy)
    missing = max(ndmin, int(original in _ORDERS)) - np.ndim(result)
    return result.reshape((*(1,) * missing, *result.shape)) if missing > 0 else result


def _of_value(
    memory: TraceMemory, original: Function, value: Any, dtype: Any, order: str | None, copy: Any
) -> Any:
    if isinstance(value, ArrayValue):
        return _of_array(original, value, dtype, order, copy)
    if is_known(value) and not isinstance(value, (ScalarValue, Symbol)):
        settings = {"dtype": dtype, "order": order, "copy": copy}
        omitted = {"dtype": None, "order": None, "copy": UNSET}
        changes = {key: each for key, each in settings.items() if each is not omitted[key]}
        return _of_known(memory, original, (value,), changes)
    if copy is False:
        raise ValueError(_COPIED)
    if isinstance(value, (ScalarValue, Symbol)):
        symbol = value.read() if isinstance(value, ScalarValue) else value
        result: Any = memory.value_of(symbol)
        return result if dtype is None else result.astype(dtype)
    if isinstance(value, (list, tuple)):
        return array_from(memory, cast("Any", value), dtype)
    return _of_known(memory, original, (value,), {} if dtype is None else {"dtype": dtype})


_COPIED = "Unable to avoid copy while creating an array as requested."


def _of_array(
    original: Function, value: Any, dtype: DTypeLike | None, order: str | None, copy: bool | None
) -> Any:
    same = dtype is None or np.dtype(dtype) == value.dtype
    order = _ORDERS.get(original) or order or "K"
    is_copy = copy is True or (original is np.array and copy is UNSET) or not value.lies_in(order)
    if copy is False and not (same and value.lies_in(order)):
        raise ValueError(_COPIED)
    copied = value.copy(order) if same and is_copy else value
    return copied if same else value.astype(dtype, order)


def _of_known(
    memory: TraceMemory, original: Function, args: Sequence[Any], kwargs: Keywords
) -> Any:
    """Return NumPy's array of known values: a new symbolic array, or a view of a plain argument."""
    if original not in _CONVERTING:
        args, kwargs = plains(args), plains(kwargs)
    else:
        args = tuple(_plain_lists(value) for value in args)
    real = plainly(original, *args, **kwargs)
    if type(real) is not np.ndarray:
        return real
    for leaf in leaves([args, kwargs]):
        if isinstance(leaf, np.ndarray) and np.may_share_memory(leaf, real):  # pyright: ignore
            return real
    return memory.plain_array(real) if real.dtype.kind in "biufc" else real


def _plain_lists(value: Any) -> Any:
    """Return lists with plain arrays in place of known symbolic arrays; numbers stay."""
    if isinstance(value, (list, tuple)):
        return [_plain_lists(item) for item in cast("list[Any]", value)]
    return value.plain if isinstance(value, ArrayValue) else value


def _of_one_value(value: float) -> Record:
    def record(
        memory: TraceMemory, original: Function, shape: Any, dtype: Any = None, order: str = "C"
    ) -> Any:
        sizes: Any = shape if isinstance(shape, (tuple, list)) else (shape,)  # pyright: ignore
        if any(isinstance(size, Dim) for size in sizes):
            return memory.value_of(
                memory.filled(value, tuple(sizes), DType(numpy_code(dtype or float)))
            )
        real = plainly(original, *plains((shape, dtype, order)))
        if original is _EMPTY and real.dtype.kind in "biufc":
            real.fill(value)
        result = memory.plain_array(real)
        result.cell.fill = real.dtype.type(value).item() if real.dtype.kind in "biufc" else None
        return result

    return record


def _full(
    memory: TraceMemory,
    original: Function,
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
) -> Any:
    if is_known(fill_value) and type(fill_value) is not TracedNumber:
        return _of_known(memory, original, (shape, fill_value, dtype, order), {})
    array = array_from(memory, [fill_value] if type(fill_value) is TracedNumber else fill_value)
    symbol = array.read()
    real = plainly(np.empty, plains(shape), dtype or symbol.dtype.to_numpy(), cast("Any", order))
    new = assigned(memory, fill_value, DType.from_numpy(real.dtype))
    result: Any = memory.value_of(broadcast(memory, new, real.shape))
    result.cell.buffer = real
    return result


def _from_values(memory: TraceMemory, original: Function, *args: Any, **kwargs: Any) -> Any:
    """Return the function's own result on symbolic arguments, else an array of known values."""
    if not is_known(args, kwargs):
        return original(*args, **kwargs)
    return _of_known(memory, original, args, kwargs)


def _by_python_code(memory: TraceMemory, original: Function, *args: Any, **kwargs: Any) -> Any:
    """Run the Python code of a function that does not dispatch, with stand-ins in its globals."""
    if is_known(args, kwargs):
        return _of_known(memory, original, args, kwargs)
    body = _in_space(original, _body_space(original.__globals__))
    with memory.graph.at(user_location()):
        return body(*args, **kwargs)


def _of_bytes(memory: TraceMemory, original: Function, *args: Any, **kwargs: Any) -> Any:
    if is_known(args, kwargs):
        return _of_known(memory, original, args, kwargs)
    raise GraphError("the bytes of an array are known when the graph runs", fix="use x.astype(...)")


def _of_types(memory: TraceMemory, original: Function, *args: Any, **kwargs: Any) -> Any:
    """Return what a function of dtypes answers, or NumPy's error for an array in their place."""
    return plainly(original, *layouts(args), **layouts(kwargs))


def _conversion(memory: TraceMemory, original: Function, *args: Any, **kwargs: Any) -> Any:
    """Record a call of a class of scalars: `np.float32(x)` is a scalar, or the array of a dtype."""
    if len(args) != 1 or kwargs:
        return original(*args, **kwargs)
    return _record_conversion(memory, np.asarray, args[0], original)[()]


_OF_SYMBOLS = (_of_types, _conversion)
"""The records of functions that NumPy itself computes without symbolic arguments."""


def _has_values(*values: Any) -> bool:
    return any(isinstance(leaf, TracedValue) for leaf in leaves(values))


def _is_number(kind: type) -> bool:
    code = np.dtype(kind).char  # neither long double nor a second class of 64-bit integers
    return code.lower() not in "gq" and code in np.typecodes["AllInteger"] + "?efdFD"


def _of_list(memory: TraceMemory, original: Function, *args: Any, **kwargs: Any) -> Any:
    """Record np.sum and similar functions of a list of symbolic values.

    A list has no `__array_function__`, so NumPy would not dispatch the call.
    """
    if args and isinstance(args[0], (list, tuple)) and not is_known(args[0]):
        first = array_from(memory_among(args[0]), cast("Any", args[0]))
        return original(first, *args[1:], **kwargs)
    return original(*args, **kwargs)


def _iterated(
    memory: TraceMemory,
    original: Function,
    iter: Iterable[Any],  # noqa: A002 -- NumPy's name
    dtype: DTypeLike | None,
    count: int = -1,
) -> Any:
    values: list[Any] = list(islice(iter, count) if count >= 0 else iter)  # pyright: ignore
    if is_known(values):
        return _of_known(memory, original, (values, dtype, count), {})
    return array_from(memory, values, dtype)


def _strided(
    memory: TraceMemory,
    original: Function,
    x: ArrayLike,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> Any:
    """Return a view with other strides, all of whose elements lie in the memory of x."""
    if not isinstance(x, ArrayValue) or not is_known(shape, strides):
        raise GraphError(
            "the memory layout of the view is unknown in a trace",
            fix="use sliding_window_view, or sizes and strides that are numbers",
        )
    memory.reads_layouts(LayoutUse.ALL)
    view = plainly(original, x.plain, plains(shape), plains(strides), writeable=writeable)
    if steps_between(x.plain if x.origin is None else x.origin, view) is None:
        raise GraphError(
            "elements of the view lie outside of the array, or between its elements",
            fix="use x.copy() first",
        )
    return x.of_view(view)


_EMPTY = np.empty
_ORDERS: dict[Any, str] = {np.ascontiguousarray: "C", np.asfortranarray: "F"}
_RECORDS: dict[str, Record] = {
    **dict.fromkeys(("array", "asarray", "asanyarray"), _record_conversion),
    **dict.fromkeys(("ascontiguousarray", "asfortranarray"), _record_conversion),
    **dict.fromkeys(("require", "asarray_chkfinite"), _by_python_code),
    "frombuffer": _of_bytes,
    "zeros": _of_one_value(0),
    "empty": _of_one_value(0),
    "ones": _of_one_value(1),
    "full": _full,
    "fromiter": _iterated,
    **dict.fromkeys(("arange", "linspace", "eye", "identity", "tri", "indices"), _from_values),
    **dict.fromkeys(("logspace", "geomspace", "fromfunction", "vander"), _from_values),
    **dict.fromkeys(("sum", "prod", "mean", "std", "var", "median"), _of_list),
    **dict.fromkeys(("max", "min", "amax", "amin", "any", "all"), _of_list),
    **dict.fromkeys(("issubdtype", "promote_types", "isdtype", "fromstring"), _of_types),
}
_CONVERTING = {np.array, np.asarray, np.asanyarray, *_ORDERS}
MAKERS: dict[str, tuple[Any, Any]] = {
    name: (getattr(np, name), _maker(getattr(np, name), record))
    for name, record in _RECORDS.items()
}
"""The NumPy function and its stand-in during a trace, by the function's name in numpy."""
MAKERS["as_strided"] = as_strided, _maker(as_strided, _strided)

_CLASSES: dict[Any, Any] = {
    **{kind: _maker(kind, _conversion) for kind in {*np.sctypeDict.values()} if _is_number(kind)},
    **{kind: _maker(kind, _of_types) for kind in (np.dtype, np.finfo, np.iinfo)},
    np.ndarray: _maker(np.ndarray, _of_bytes),
}
"""The stand-ins of NumPy's classes where a program calls them, as in `np.float32(x)`.

Everywhere else, as in `x.dtype == np.float32`, the program has the class itself.
"""


@lru_cache(1024)
def _calls_attribute(code: CodeType, offset: int) -> bool:
    """Whether an instruction loads an attribute that nothing but a call uses.

    The instruction itself says so, or the one after it. Before Python 3.13 a function lies on the
    stack below its arguments alone: the first instruction that takes it is its call.
    """
    instructions = dis.get_instructions(code)
    load = next(x for x in instructions if x.offset == offset)
    if load.opname == "LOAD_METHOD" or "NULL" in load.argrepr:
        return True
    if sys.version_info >= (3, 13):
        return next(instructions).opname == "PUSH_NULL"
    above = 0  # the values on the stack above the attribute
    for instruction in instructions:
        above += dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        if above < 1 and instruction.opname != "PRECALL":
            return above == -1 and instruction.opname == "CALL"
    return False


def is_taken_for_dtype(frame: FrameType) -> bool:
    """Whether NumPy's compiled code reads `.dtype` of an argument that NumPy's Python code passes.

    It takes any object with a dtype for that dtype, and so refuses ndarrays itself.
    """
    if not frame.f_globals.get("__name__", "").startswith("numpy"):
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in _CALLS


_CALLS = frozenset(("PRECALL", "CALL", "CALL_KW", "CALL_FUNCTION_EX"))


class TracedNumpy(ModuleType):
    """A NumPy module with stand-ins for the array constructors."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        for name, (original, maker) in MAKERS.items():
            if getattr(module, name, None) is original:
                setattr(self, name, maker)
        vars(self)["_traced_module"] = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(vars(self)["_traced_module"], name)
        if isinstance(value, type) and value in _CLASSES:
            frame = _getframe(1)
            if _calls_attribute(frame.f_code, frame.f_lasti):
                return _CLASSES[value]
        return value

    def __dir__(self) -> list[str]:
        return dir(vars(self)["_traced_module"])


@bounded
class _Joiner:
    """The stand-in of np.r_ or np.c_: NumPy's Python code on the arrays of a trace."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        if active_memory() is None or is_known(key):
            return self._original[key]
        join: Any = cast("Any", type(self._original)).__getitem__
        return _in_space(join, _body_space(join.__globals__))(self._original, concrete(key))


_JOINERS = {"r_": _Joiner(np.r_), "c_": _Joiner(np.c_)}


class _TracedMain(TracedNumpy):
    """NumPy itself with stand-ins for np.r_ and np.c_ too."""

    def __init__(self) -> None:
        super().__init__(np)
        for name, joiner in _JOINERS.items():
            setattr(self, name, joiner)
        self.lib = TracedNumpy(np.lib)
        vars(self.lib)["stride_tricks"] = TracedNumpy(np.lib.stride_tricks)


TRACED_NUMPY = _TracedMain()
_PAIRS = [
    *MAKERS.values(),
    (np, TRACED_NUMPY),
    (np.lib, TRACED_NUMPY.lib),
    (np.lib.stride_tricks, TRACED_NUMPY.lib.stride_tricks),
    *((getattr(np, name), joiner) for name, joiner in _JOINERS.items()),
    *((getattr(builtins, name), stand_in) for name, stand_in in BUILTIN_STAND_INS.items()),
]
STAND_INS: dict[int, Any] = {id(original): stand_in for original, stand_in in _PAIRS}
ORIGINALS: dict[int, Any] = {id(stand_in): original for original, stand_in in _PAIRS}


# -- NumPy's functions with Python bodies

BODY_PARTS: dict[str, Callable[[Any], Any]] = {}
"""By the name of a private function of NumPy, which is compiled or branches on values: the function
that takes it and returns its stand-in."""
_BODIES: dict[int, tuple[Any, dict[str, Any], dict[str, Any]]] = {}
"""By the id of a NumPy module's globals: these, as they were, and their copy with stand-ins."""


def traced_body(function: Function) -> Callable[..., Any] | None:
    """Return the Python body of a NumPy function, with constructors that make symbolic arrays.

    The result is None for compiled functions.
    """
    body = getattr(function, "_implementation", None)
    return _in_space(body, _body_space(body.__globals__)) if type(body) is FunctionType else None


def _in_space(function: FunctionType, space: dict[str, Any]) -> FunctionType:
    new = FunctionType(
        function.__code__, space, function.__name__, function.__defaults__, function.__closure__
    )
    new.__kwdefaults__ = function.__kwdefaults__
    return new


def _body_space(space: dict[str, Any]) -> dict[str, Any]:
    _, before, body_space = _BODIES.get(id(space), (space, {}, {}))
    if len(before) != len(space) or not all(map(operator.is_, before.values(), space.values())):
        body_space = dict(space, __name__="traced_numpy")
        _BODIES[id(space)] = space, dict(space), body_space
        for name, value in space.items():
            if id(value) in STAND_INS:
                body_space[name] = STAND_INS[id(value)]
            elif type(value) is FunctionType and value.__globals__ is space:
                body_space[name] = _in_space(value, body_space)
            elif isinstance(value, ModuleType) and value.__name__.startswith("numpy._core"):
                body_space[name] = TracedNumpy(value)
        for name in BODY_PARTS.keys() & space.keys():
            body_space[name] = BODY_PARTS[name](space[name])
    return body_space
