"""Results of a run: arrays that own their memory, and errors that name the failing op.

Whether other references to an array exist decides three things: reuse of a result's memory, which
lazy values to keep, and in-place writes to arrays. Each compares the object's reference count with
the count of a reference object that is held in the same way. Where counts are unreliable (without
a GIL, for example), no memory is reused and every object counts as held.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from graphir.errors import OperandInfo
from graphir.public import (
    ExecutionError,
    Graph,
    GraphirError,
    OutOfMemoryError,
    Symbol,
    TensorType,
    ops,
)

Out = TypeVar("Out", bound="NDArray[Any] | tuple[NDArray[Any], ...]")
"""The argument `out` of a run, which is its result too."""

Outputs: TypeAlias = NDArray[Any] | Any
"""The results of a run: an array, or a tuple of arrays, whose number the graph alone knows.

Type checkers refuse what no array has, and let a program unpack a tuple.
"""


def results(values: Sequence[NDArray[Any]], inputs: Sequence[NDArray[Any]]) -> Outputs:
    """Return the outputs as arrays that callers may keep and modify: an array, or a tuple."""
    values_owned = owned(values, inputs)
    return values_owned[0] if len(values_owned) == 1 else values_owned


def owned(
    values: Sequence[NDArray[Any]], inputs: Sequence[NDArray[Any]]
) -> tuple[NDArray[Any], ...]:
    """Return the values; copy each value that aliases an input, a constant or another value."""
    owner_ids = {id(_owner(array)) for array in inputs}
    results_owned: list[NDArray[Any]] = []
    for value in values:
        free = value.flags.writeable and id(_owner(value)) not in owner_ids
        results_owned.append(value if free else value.copy())
        owner_ids.add(id(_owner(results_owned[-1])))
    return tuple(results_owned)


def _owner(array: Any) -> Any:
    """Return the object that owns an array's memory, through any chain of views."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def require_outputs(graph: Graph) -> None:
    """Raise ExecutionError unless the argument is a Graph with outputs."""
    if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExecutionError("a Graph is needed", got=repr(graph))
    if not graph.outputs:
        raise ExecutionError(
            f"graph {graph.name!r} has no outputs to compute", fix="name them with g.output(...)"
        )


def require_declared(
    values: Sequence[Any], dtypes: Sequence[Any], shapes: Sequence[tuple[int, ...]]
) -> None:
    """Raise ExecutionError unless outputs of a plan have the dtypes and shapes that they must have.

    A plan has other ones only by a mistake of the planner.
    """
    for value, dtype, shape in zip(values, dtypes, shapes, strict=True):
        if value.dtype != dtype or value.shape != shape:
            raise ExecutionError(
                f"the plan must give an output of {dtype} and shape {shape}",
                got=f"{value.dtype} and shape {value.shape}",
                fix="use interpret(graph, ...), and report this error of graphir",
            )


REFUSAL_ERRORS = GraphirError, ValueError, OverflowError, MemoryError
"""The exceptions that kernels raise for invalid operands and for sizes that exceed memory."""


def refused(error: BaseException, symbol: Symbol) -> GraphirError:
    """Return an exception of REFUSAL_ERRORS as an ExecutionError with op, line and operands.

    The operands have the types of the user's program, before the casts that passes inserted.
    """
    if isinstance(error, MemoryError):
        execution_error = OutOfMemoryError.of(error)
    elif isinstance(error, GraphirError):
        kind = type(error) if isinstance(error, ExecutionError) else ExecutionError
        execution_error = kind.like(error)
    else:
        execution_error = ExecutionError(str(error))
    operands = [OperandInfo("", _written_type(arg)) for arg in symbol.args]
    return execution_error.at(symbol.location, symbol.op.name, operands)


def _written_type(operand: Symbol) -> TensorType:
    """Return the type of an operand before inserted casts, including casts folded to constants."""
    shape = operand.type
    if type(shape) is not TensorType:
        return shape
    while operand.op is ops.cast and operand.origins:
        operand = operand.args[0]
    dtype = operand.origins[0].source if operand.origins else operand.dtype
    return shape.cast(operand.graph.concrete_dtype(dtype))


# -- ownership by reference counts


def is_held(value: object, holders: int = 0) -> bool:
    """Whether an object has more references than the caller's local variable and `holders`.

    True where counts are unreliable.
    """
    return not counts_references() or _count(value) > _count_of_local() + holders


def _count(value: object) -> int:
    return sys.getrefcount(value)


@cache
def _count_of_local() -> int:
    """Return the count of an object that one local variable references and a call takes.

    It is lower where loads of locals borrow the reference (Python 3.14).
    """
    local = object()
    return _count_in_call(local)


def _count_in_call(value: object) -> int:
    return _count(value)


def counts_references() -> bool:
    """Whether reference counts are reliable: the GIL is on and a one-time experiment succeeds."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)()) and _counts_holders()


@cache
def _counts_holders() -> bool:
    """Whether the count rises by one with each new reference, and falls at each removal."""
    item = object()
    alone = sys.getrefcount(item)
    holders = [item, item]
    count = sys.getrefcount(item)
    holders.clear()
    return count == alone + 2 and sys.getrefcount(item) == alone
