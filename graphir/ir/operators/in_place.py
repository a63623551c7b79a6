"""In-place operators: the symbol to which `x += y` binds the name x. Symbols never change.

NumPy, PyTorch and others write the result of `x + y` to the array x. So the result is cast to the
dtype of x, or the library refuses it. In libraries with immutable arrays, x is bound to the result.
The rule set decides (`in_place`, `has_scalars`, `storable`).
"""

from __future__ import annotations

from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import TYPE_CHECKING, Any, NoReturn

from graphir import ops
from graphir.errors import GraphError, GraphirError, MissingOpError, PromotionError, ShapeError
from graphir.ir.operators.powers import power
from graphir.location import ASSIGN, InPlaceLocation, Location, Origin, user_location
from graphir.ops.attribute_record import TO_DTYPE
from graphir.ops.op import Op, keep_refusal
from graphir.ops.types import TensorType
from graphir.promotion.rules import PromotionRules

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol


def in_place(op: Op, x: Any, other: Any) -> Symbol:
    """Return the symbol to which an in-place operator binds x.

    The result is NotImplemented for a foreign operand. Raises the errors of the operator;
    PromotionError or ShapeError where the rules' library refuses to write the result to x; and
    GraphError for an array in a function that is being traced.
    """
    graph: Graph = x.graph
    inner = graph.innermost
    before = len(inner.symbols)
    result = power(x, other) if op is ops.pow else None
    if result is None:
        result = graph.binary(op, x, other, 3)
    if result is NotImplemented:
        return result
    if result.op is op and result.args[0] is x:
        entry = graph.trace_state.in_place_sites.get(id(result.source))
        result.source = entry[1] if entry else _in_place_site(graph, result.location)
    if result.type is x.type and not graph.trace_state.is_tracing:
        return result
    try:
        if graph.trace_state.is_tracing and not is_scalar(x):
            raise MissingOpError(
                "a traced function writes to no array in place: other names of the array, and the "
                "caller's, would keep their old values",
                fix=f"write {_written_out(op)}",
            )
        return assigned(op, x, result)
    except GraphirError as error:
        inner.withdraw(before)
        error = graph.builder.refuse(error, op, (x, other), _getframe(1))
        raise (
            keep_refusal(error, _getframe(2)) if graph.trace_state.is_tracing else error
        ) from None


def assigned(op: Op, x: Symbol, result: Symbol) -> Symbol:
    """Return the symbol to which the in-place operator of an op binds x, given the op's result.

    It is the result, or a cast of the result to the dtype of x. Raises PromotionError or ShapeError
    where the rules' library refuses to write the result to x.
    """
    if result.type is x.type:
        return result
    graph, rules = x.graph, x.graph.rules
    if op.name not in rules.in_place or result.type == x.type:
        return result
    scalar = is_scalar(x)
    if scalar:
        return result
    if scalar is None:
        raise PromotionError(
            f"whether {x.name} is a scalar of {x.dtype}, so that it becomes {result.type}, or a "
            f"0-d array, to which that is written, depends on how {x.op.name} was called",
            fix=f"write {_written_out(op)}, with .cast(DType.{x.dtype}) for the array",
        )
    check_writable(rules, op, x.type, result.type)
    if result.dtype is x.dtype:
        return result
    place = _in_place_site(graph, result.location)
    origin = Origin("result", op.name, place, ASSIGN, result.dtype, x.dtype)
    return graph.append(ops.cast, (result,), TO_DTYPE[x.dtype.code], x.type, (origin,))


def _in_place_site(graph: Graph, site: Location) -> Location:
    """Return the InPlaceLocation at a location. Each location of a graph has one."""
    if site.in_place:
        return site
    entry = graph.trace_state.in_place_sites.get(id(site))
    if entry is None:  # the entry keeps the location alive, so that its id stays valid
        entry = graph.trace_state.in_place_sites[id(site)] = site, InPlaceLocation.of(site)
    return entry[1]


def check_writable(rules: PromotionRules, op: Op, array: TensorType, result: TensorType) -> None:
    """Check that an in-place operator may write a result to an array of these types.

    Raises ShapeError for different shapes, and PromotionError where the rules forbid the cast.
    """
    if result.shape != array.shape:
        raise ShapeError(
            f"the result is {result}, which cannot be written in place to {array}",
            fix=f"write {_written_out(op)}",
        )
    if result.dtype is not array.dtype and not rules.storable(result.dtype, array.dtype):
        raise PromotionError(
            f"the result is {result.dtype}, which {rules.name!r} does not write in place to "
            f"{array.dtype}",
            fix=f"write {_written_out(op)}, or .cast(DType.{array.dtype}) y",
        )


def _written_out(op: Op) -> str:
    return f"x = x {SIGNS[op.name]} y"


def is_scalar(x: Symbol) -> bool | None:
    """Answer whether x is an immutable Python number or NumPy scalar; None if that is unknown.

    0-d inputs and constants are arrays, unless they are Python numbers. A 0-d result that NumPy
    computes is a scalar. A 0-d result of a movement op may be a view of an array, so the graph
    alone does not decide.
    """
    if x.rank:
        return False
    if x.op.kind == "creation":
        return x.dtype.weak or (x.op is ops.constant and x.attrs["literal"] is not None)
    if x.op is ops.cast:
        return is_scalar(x.args[0])
    rules = x.graph.rules
    if rules.in_place and not rules.has_scalars and not x.dtype.weak:
        return False
    return True if x.op.computes and x.op not in _ARRAYS else None


_ARRAYS = (ops.where, ops.tensordot, ops.real, ops.imag, ops.conj)
"""The ops whose 0-d results may be 0-d arrays in NumPy, not scalars."""

SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "pow": "**",
    "matmul": "@",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
"""The signs of Python's binary operators, by the names of their ops."""


# -- attributes that write to an array


class WriteError(GraphError, AttributeError):
    """The program used an attribute that writes to a NumPy array, and symbols never change."""


WRITING = {
    **dict.fromkeys(("put", "itemset", "setfield"), "x = np.where(mask, value, x)"),
    **dict.fromkeys(("sort", "partition"), "x = np.sort(x)"),
    "fill": "x = np.full_like(x, value)",
    "flat": "x = x.reshape(-1)",
    "resize": "x = x.reshape(shape)",
    "shape": "x = x.reshape(shape)",
    "dtype": "x = x.astype(dtype)",
    "strides": "x = x[::step]",
    "real": "x = ops.as_complex(real, x.imag)",
    "imag": "x = ops.as_complex(x.real, imag)",
}
"""The attributes that write to NumPy's arrays, and the code to write instead."""


def refuse_write(name: str) -> NoReturn:
    """Raise WriteError for an attribute of WRITING, with the user's line and the fix."""
    raise WriteError(
        "writes to an array, and a symbol never changes",
        fix=f"write {WRITING[name]}",
        op=f".{name}",
        location=user_location(),
    )
