"""Creation methods of Graph: constants, ranges and fills, such as `g.scalar[DType.int16](1)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from graphir import ops
from graphir.decorators import PublicNames
from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError
from graphir.hints import Number, Ties
from graphir.ir.literals import (
    DeferredNumber,
    array_of,
    is_literal,
    literal_array,
    range_attributes,
)
from graphir.ir.serialization import TraceState
from graphir.location import Origin, placing
from graphir.ops.dims import DimLike, ShapeLike
from graphir.ops.op import Op
from graphir.promotion import PromotionRules

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol

P = ParamSpec("P")
R = TypeVar("R")


class Maker(Generic[P, R]):
    """A bound method that takes its dtype in brackets or as its argument `dtype`."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function

    def __getitem__(self, dtype: DTypeLike) -> Callable[..., R]:
        function: Callable[..., R] = self._function
        return partial(function, dtype=dtype)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method with the same arguments."""
        return self._function(*args, **kwargs)


class typed(Generic[P, R]):  # noqa: N801 -- a decorator
    """Decorator: make a method of a graph accept its dtype in brackets, through a Maker."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method: Callable[..., R] = placing(method)
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, graph: None, owner: type) -> typed[P, R]: ...
    @overload
    def __get__(self, graph: object, owner: type) -> Maker[P, R]: ...
    def __get__(self, graph: object | None, owner: type) -> typed[P, R] | Maker[P, R]:
        return self if graph is None else Maker(partial(self._method, graph))


class Makers(PublicNames):
    """The methods of a graph that make symbols from values known at build time.

    Graph inherits them. The graph's rules decide the dtype of Python scalars.
    """

    tf32: Ties
    trace_state: TraceState

    @property
    def rules(self) -> PromotionRules:
        """The rule set of the graph. Graph overrides this property."""
        raise NotImplementedError

    def emit(self, op: Op, args: tuple[Symbol, ...], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op to the graph and return its symbol. Graph overrides this method."""
        raise NotImplementedError

    @typed
    def scalar(self, value: Number | DeferredNumber, dtype: DTypeLike | None = None) -> Symbol:
        """Add a 0-d constant: `g.scalar[DType.int16](1)`.

        Without a dtype, a NumPy scalar keeps its own dtype, and a Python scalar gets the dtype that
        the rules give it. Raises GraphError for a value that does not fit the dtype.
        """
        if isinstance(value, DeferredNumber):
            return value.symbol() if dtype is None else value.filled(DType(dtype))
        literal = value if dtype is None and is_literal(value) else None
        return self.constant_of(self._literal(value, dtype), literal)

    @typed
    def constant(self, value: Any, dtype: DTypeLike | None = None) -> Symbol:
        """Add a constant from an array, or from lists and a dtype.

        Raises GraphError for a value that does not fit the dtype, and for lists without a dtype.
        """
        return self.constant_of(array_of(value, None if dtype is None else DType(dtype), self.tf32))

    @typed
    def vector(self, values: Sequence[Any], dtype: DTypeLike | None = None) -> Symbol:
        """Add a constant with one axis; GraphError for values with another number of axes."""
        values_array = array_of(values, None if dtype is None else DType(dtype), self.tf32)
        if values_array[1].ndim != 1:
            raise GraphError("a vector must have one axis", got=f"{values_array[1].ndim} axes")
        return self.constant_of(values_array)

    @typed
    def range(
        self,
        start: Any,
        stop: Any = None,
        step: Any = 1,
        dtype: DTypeLike | None = None,
    ) -> Symbol:
        """Add the values start, start + step, ... before stop. `stop` may be a symbolic dim.

        `g.range[D](n)` counts from 0. Raises GraphError without a dtype or for a value that does
        not fit it, ShapeError for a step of 0 and for bounds that are not finite real numbers.
        """
        return self.emit(ops.range, (), range_attributes(start, stop, step, self._dtype(dtype)))

    @typed
    def full(
        self, value: Number | DeferredNumber, shape: ShapeLike, dtype: DTypeLike | None = None
    ) -> Symbol:
        """Add an array of one value, of a given shape. The dtype is as for `scalar`."""
        if isinstance(value, DeferredNumber):
            return ops.broadcast_to(self.scalar(value, dtype), shape)
        dtype_ = self._literal(value, dtype)[0]
        literal = value if dtype is None and is_literal(value) else None
        attrs = {"dtype": dtype_, "value": value, "shape": shape, "literal": literal}
        return self.emit(ops.full, (), attrs)

    @typed
    def eye(
        self, rows: DimLike, columns: DimLike | None = None, dtype: DTypeLike | None = None
    ) -> Symbol:
        """Add a matrix with ones on the diagonal and zeros elsewhere, square without `columns`."""
        size = {"rows": rows, "columns": rows if columns is None else columns}
        return self.emit(ops.eye, (), {"dtype": self._dtype(dtype), **size})

    def _dtype(self, dtype: DTypeLike | None) -> DType:
        if dtype is None:
            raise GraphError("a dtype is needed", fix="write g.range[DType.int64](10), for example")
        return DType(dtype)

    def _literal(self, value: Any, dtype: DTypeLike | None) -> tuple[DType, Any]:
        if dtype is not None:
            return literal_array(value, DType(dtype), self.rules, self.tf32)
        if is_literal(value):
            return literal_array(value, self.rules.literal(value), self.rules, self.tf32)
        return array_of(value, None, self.tf32)

    def numpy_call(self, call: Callable[..., Any], *args: Any) -> Any:
        """Run a handler of a NumPy function, `call(self, *args)`, and return its result.

        The handler runs no user code. Subclasses override this method to act around it.
        """
        body = self.trace_state.body
        return call(self, *args) if body is None else body.numpy_call(call, *args)

    def ask(self, question: Callable[..., Any], *operands: Any) -> Any:
        """Return `question(*operands)`, and record the question for numbers of a traced call.

        The answer may differ for other numbers. Replay asks the recorded question again and
        compares the answers.
        """
        numbers = self.trace_state.numbers
        return numbers.ask(question, *operands) if numbers else question(*operands)

    def entering(self, array: Any) -> Symbol:
        """Add a constant for an array that is an operand beside symbols."""
        return self.constant_of(array_of(array, None, self.tf32))

    def implied_cast(self, x: Symbol, dtype: DType, op: Op, position: int = 0) -> Symbol:
        """Convert an operand of a decomposed op by an implicit cast.

        Other ops compute `op` in `dtype`. The cast's origin names `op` and the operand at
        `position`, and `rules` as its rule.
        """
        return self.cast_for(x, dtype, op.operand(position), op.name)

    def cast_for(
        self, x: Symbol, dtype: DType, operand: str, op: str, rule: str | None = None
    ) -> Symbol:
        """Convert a symbol by a cast whose origin names an operand, an op and a rule.

        Without `rule`, the rule is that of the graph. A symbol of the dtype is returned unchanged.
        """
        if x.dtype is dtype:
            return x
        cast = self.emit(ops.cast, (x,), {"to": dtype})
        cast.source = (Origin(operand, op, cast.location, rule or self.rules.name, x.dtype, dtype),)
        return cast  # the cast is new, so changing its source affects no other user

    def constant_of(self, typed_array: tuple[DType, Any], literal: Any = None) -> Symbol:
        """Add a constant from a dtype and an array in that dtype's storage.

        `literal` is the Python number from which the constant was made, if any.
        """
        dtype, array = typed_array
        return self.emit(ops.constant, (), {"dtype": dtype, "value": array, "literal": literal})
