"""NumPy's functions that write to their first argument: np.copyto, np.put, np.add.at and others.

np.copyto, np.add.at and np.subtract.at are ops. The others run in NumPy's Python code, or are calls
of NumPy's compiled code, which give new values of the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from graphir.dtypes import DType
from graphir.errors import GraphError, MissingOpError
from graphir.hints import ArrayOrNumber
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.indexing import flat_places, keys_of
from graphir.numpy_api.arrays.memory import ArrayValue, TracedValue, TraceMemory, plainly
from graphir.numpy_api.arrays.operands import (
    array_from,
    assigned,
    broadcast,
    cast_to_out,
    is_known,
    plains,
    write_where,
)
from graphir.numpy_api.counting import joined_at
from graphir.numpy_api.signatures import bound
from graphir.semantics.library_calls import Function

WRITING: dict[Any, str] = {
    np.copyto: "dst",
    np.put: "a",
    np.place: "arr",
    np.putmask: "a",
    np.put_along_axis: "arr",
    np.fill_diagonal: "a",
}
"""The functions that write to their first argument, with its name."""
_COMPILED = frozenset((np.put, np.place, np.putmask))
"""Those of them that are compiled, or call compiled code alone."""


def write(
    memory: TraceMemory, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Execute a call of a function of WRITING.

    Returns False for a call whose Python code is to run. Raises MissingOpError for a call of
    compiled code.
    """
    if is_known(args, kwargs):
        x = _target(args[0] if args else kwargs[WRITING[function]], function.__name__)
        _write_known(x, function, args, kwargs)
        return True
    if function is np.copyto:
        places, settings = bound(function, _copyto, args, kwargs, leading=1)
        _copyto(memory, *places, **settings)
        return True
    if function in _COMPILED:
        raise MissingOpError("no op writes as this does")
    return False


def _write_known(
    x: ArrayValue, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Execute a call of NumPy that writes known values to an array of known values."""
    plainly(function, *plains(args), **plains(kwargs))
    x.cell.changed()


def _target(x: ArrayOrNumber, name: str) -> ArrayValue:
    if not isinstance(x, ArrayValue):
        raise GraphError(
            "the first argument is an array that the traced function has not created",
            op=f"np.{name}",
            got=f"a {type(x).__name__}",
            fix="use np.array(x)",
        )
    x.check_writable()
    return x


def _is_number(value: Any) -> bool:
    """Whether a value is a known number of Python or NumPy, or a traced number."""
    return not isinstance(value, TracedValue) and np.isscalar(value)


def _copyto(
    memory: TraceMemory, dst: Any, src: ArrayLike, casting: str = "same_kind", where: Any = True
) -> None:
    into = _target(dst, "copyto")
    value: Any = src if _is_number(src) else array_from(memory, src)
    if _is_number(src):
        number = plains(src)
        plainly(np.copyto, np.empty((), into.element.to_numpy()), number, cast("Any", casting))
        symbol = assigned(memory, value, into.element)
    else:
        symbol = cast_to_out(memory, into, broadcast(memory, value.read(), into.dims), casting)
    symbol = broadcast(memory, symbol, into.dims)
    write_where(memory, into, symbol, where)


def add_at(
    memory: TraceMemory, ufunc: np.ufunc, a: ArrayOrNumber, indices: Any, b: ArrayLike | None = None
) -> None:
    """Execute ufunc.at: apply the operation once for each index, so repeated indices accumulate.

    Sums in the dtype of the array are one op. Raises GraphError for others.
    """
    x = _target(a, f"{ufunc.__name__}.at")
    values = () if b is None else (b,)
    if is_known(x, indices, values):
        _write_known(x, ufunc.at, (x, indices, *values), {})
        return
    if b is None:
        raise MissingOpError("no op writes as this does")
    whole, keys = x.read(), keys_of(memory, indices)
    if any(isinstance(key, TracedValue) and key.read().dtype is DType.bool for key in keys):
        raise GraphError("which elements a mask selects depends on values", fix="use np.where")
    if len(keys) == 1 and isinstance(keys[0], TracedValue):
        places = keys[0].read()
    else:
        places = flat_places(memory, x.plain.shape, keys)
        if not isinstance(places, Symbol):
            places = memory.constant_array(places)
        whole = memory.reshaped(whole, (whole.size,))
    if isinstance(b, float) and x.element.to_numpy().type(b) != np.array(b):
        b = np.asarray(b)  # NumPy adds it in its own dtype
    new = assigned(memory, b, x.element) if _is_number(b) else array_from(memory, b).read()
    x.write(memory.reshaped(joined_at(ufunc, whole, places, new), x.dims))
