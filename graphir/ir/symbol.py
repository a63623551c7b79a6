"""Symbol: a typed value of a graph. Its operators and methods add ops to the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import TYPE_CHECKING, Any, Never, NoReturn

from graphir import ops
from graphir.dtypes import DType, DTypeLike, numpy_code
from graphir.errors import GraphError, MissingOpError, OperandInfo
from graphir.hints import ArrayOrNumber, Indices, Ints, NumPyCode
from graphir.ir.operators.arithmetic import SymbolOperators
from graphir.ir.operators.in_place import WRITING, refuse_write
from graphir.ir.operators.indexing import index, pieces
from graphir.location import Location, Origin, Source, placing, user_location
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.dims import DimLike, Shape, ShapeLike, Size
from graphir.ops.op import Inference, Op, keep_refusal
from graphir.promotion.operands import Operand

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ops.types import TensorType


class NumPyHandlers:
    """The handlers of NumPy's functions on symbols, imported at the first call of one."""

    @cached_property
    def ufunc(self) -> Callable[..., Any]:
        """The handler of a ufunc."""
        from graphir.numpy_api.dispatch import call_ufunc

        return call_ufunc

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The handler of another function."""
        from graphir.numpy_api.dispatch import call_function

        return call_function


numpy_handlers = NumPyHandlers()


class Symbol(SymbolOperators):
    """A value in a graph: an op applied to earlier symbols, with its type inferred at once.

    A symbol never changes. `x + 1`, `x[1:]` and `x.sum(axis=0)` add symbols to the same graph.
    `==` does too, and hashing is by identity. A symbol has no value in Python: bool(), float() and
    iteration raise ValuelessError.
    """

    __slots__ = ("args", "attrs", "index", "inference", "op", "source", "type")

    def __init__(
        self,
        graph: Graph,
        op: Op,
        args: tuple[Symbol, ...],
        attrs: AttributeRecord,
        type: TensorType,  # noqa: A002
        source: Source,
        index: int,
        inference: Inference | None = None,
    ) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.attrs = attrs
        self.type = type
        self.source = source
        self.index = index
        self.inference = inference

    __hash__ = object.__hash__

    @property
    def dtype(self) -> DType:
        """The dtype, inferred when the symbol was added: the answer to "what dtype is x + y?"."""
        return self.type.dtype

    @dtype.setter
    def dtype(self, value: Never) -> NoReturn:
        refuse_write("dtype")

    @property
    def shape(self) -> Shape:
        """The dims, each an int or a symbolic dim."""
        return self.type.shape

    @shape.setter
    def shape(self, value: Never) -> NoReturn:
        refuse_write("shape")

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    ndim = rank

    @property
    def size(self) -> Size:
        """The number of elements, an int or a symbolic dim."""
        return self.type.size

    @property
    def weak(self) -> bool:
        """Whether the dtype is weak: the dtype of a Python scalar, which yields to other dtypes."""
        return self.type.dtype.weak

    @property
    def operand(self) -> TensorType | Operand:
        """The operand for promotion: the type, and for a 0-d constant its value too.

        Some rule sets read the value.
        """
        if self.op is ops.constant and not self.type.shape:
            return Operand(self.type.dtype, 0, self.attrs["value"].item())
        return self.type

    @property
    def location(self) -> Location:
        """The user's source location of the symbol; for an inserted cast, that of its first use."""
        return self.source if isinstance(self.source, Location) else self.source[0].location

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The uses that an inserted cast serves; for other symbols an empty tuple.

        A folded constant has the uses of the casts that were folded into it.
        """
        return self.source if isinstance(self.source, tuple) else ()

    @property
    def name(self) -> str:
        """The symbol's name in text: `%x` for an input x, `%7` for symbol 7 not counting inputs."""
        return self.graph.name_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _symbol_at, (self.graph, self.index)

    def __copy__(self) -> Symbol:
        return self  # a symbol never changes, so a copy is the symbol itself

    if not TYPE_CHECKING:  # a type checker should still report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            if name in ("dtype", "shape", "rank", "ndim", "size"):  # the property raised: none
                getattr(self.type, name)
            if name in WRITING:
                refuse_write(name)
            fix = f"it is an op: graphir.ops.{name}(x)" if name in ops.CATALOGUE else ()
            raise MissingAttributeError(f"a Symbol has no attribute {name!r}", fix=fix)

    def __repr__(self) -> str:
        from graphir.text.printer import symbol_text

        return symbol_text(self)

    # -- conversion and shape

    def cast(self, dtype: DTypeLike) -> Symbol:
        """Convert to another dtype, rounded once; floats truncate to integers and saturate."""
        return self.graph.emit(ops.cast, (self,), {"to": dtype})

    def astype(self, dtype: DTypeLike | NumPyCode) -> Symbol:
        """Convert to another dtype, as `cast`. NumPy's codes count bytes: "i8" is int64."""
        return self.graph.emit(ops.cast, (self,), {"to": numpy_code(dtype)})

    def reshape(self, *shape: ShapeLike) -> Symbol:
        """Return the same elements in another shape; the other dims determine a dim of -1."""
        return ops.reshape(self, _one_or_all(shape))

    def broadcast_to(self, *shape: ShapeLike) -> Symbol:
        """Broadcast to a shape: repeat along axes of size 1, and along new leading axes."""
        return ops.broadcast_to(self, _one_or_all(shape))

    def rebind(self, *shape: ShapeLike) -> Symbol:
        """Give the dims other names or sizes; the runtime checks the sizes when the graph runs."""
        return ops.rebind(self, _one_or_all(shape))

    def flatten(self) -> Symbol:
        """Reshape to one axis of all elements."""
        return ops.reshape(self, (self.size,))

    def transpose(self, axis1: int = -2, axis2: int = -1) -> Symbol:
        """Exchange two axes, by default the last two."""
        return ops.transpose(self, axis1, axis2)

    def permute(self, *dims: Ints) -> Symbol:
        """Reorder the axes: axis i of the result is axis `dims[i]` of the symbol."""
        return ops.permute(self, _one_or_all(dims))

    @property
    def T(self) -> Symbol:  # noqa: N802 -- NumPy's name
        """The transpose: all axes in reverse order."""
        return ops.permute(self, tuple(reversed(range(self.rank))))

    @property
    def mT(self) -> Symbol:  # noqa: N802 -- the Array API's name
        """The matrix transpose: the last two axes exchanged."""
        return ops.transpose(self)

    def squeeze(self, axis: int) -> Symbol:
        """Remove an axis of size 1."""
        return ops.squeeze(self, axis)

    def unsqueeze(self, axis: int) -> Symbol:
        """Insert an axis of size 1."""
        return ops.unsqueeze(self, axis)

    @placing
    def split(self, sizes: int | list[DimLike], axis: int = 0) -> tuple[Symbol, ...]:
        """Split into consecutive slices along an axis, and return a tuple of them.

        `sizes` lists the sizes of the slices, or is one size that divides the axis.
        """
        return pieces(self, sizes, axis)

    @placing
    def __getitem__(self, key: Indices) -> Symbol:
        return index(self, key)

    # -- reductions and the like

    def sum(
        self,
        axis: Ints | None = None,
        keepdims: bool = False,
        dtype: DTypeLike | NumPyCode | None = None,
    ) -> Symbol:
        """The sum over `axis`: an int, a tuple, or None for all axes.

        `dtype` is the dtype of the accumulator and of the result.
        """
        return ops.sum(self, axis=axis, keepdims=keepdims, dtype=numpy_code(dtype))

    def prod(
        self,
        axis: Ints | None = None,
        keepdims: bool = False,
        dtype: DTypeLike | NumPyCode | None = None,
    ) -> Symbol:
        """The product over `axis`; the arguments are as for `sum`."""
        return ops.prod(self, axis=axis, keepdims=keepdims, dtype=numpy_code(dtype))

    def max(self, axis: Ints | None = None, keepdims: bool = False) -> Symbol:
        """The maximum over `axis`: an int, a tuple, or None for all axes."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Ints | None = None, keepdims: bool = False) -> Symbol:
        """The minimum over `axis`: an int, a tuple, or None for all axes."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Ints | None = None, keepdims: bool = False) -> Symbol:
        """The arithmetic mean over `axis`: an int, a tuple, or None for all axes."""
        return ops.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Ints | None = None, keepdims: bool = False, correction: int = 0) -> Symbol:
        """The variance over `axis`: the sum of squared deviations, divided by n - correction."""
        return ops.var(self, axis=axis, keepdims=keepdims, correction=correction)

    def std(self, axis: Ints | None = None, keepdims: bool = False, correction: int = 0) -> Symbol:
        """The standard deviation over `axis`: the square root of `var`."""
        return ops.std(self, axis=axis, keepdims=keepdims, correction=correction)

    def any(self, axis: Ints | None = None, keepdims: bool = False) -> Symbol:
        """Whether any element is true over `axis`: an int, a tuple, or None for all axes."""
        return ops.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Ints | None = None, keepdims: bool = False) -> Symbol:
        """Whether all elements are true over `axis`: an int, a tuple, or None for all axes."""
        return ops.all(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Symbol:
        """The index of the first maximum along `axis`, or in the flattened array without `axis`."""
        return ops.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Symbol:
        """The index of the first minimum along `axis`, or in the flattened array without `axis`."""
        return ops.argmin(self, axis=axis, keepdims=keepdims)

    @placing
    def clip(
        self,
        low: ArrayOrNumber | None = None,
        high: ArrayOrNumber | None = None,
        *,
        min: ArrayOrNumber | None = None,  # noqa: A002 -- NumPy's name
        max: ArrayOrNumber | None = None,  # noqa: A002 -- NumPy's name
    ) -> Symbol:
        """Limit each value to the bounds `low` and `high`. None stands for a missing bound."""
        from graphir.ir.operators.composition import clip

        low, high = low if min is None else min, high if max is None else max
        return clip(self, low, high)

    @property
    def real(self) -> Symbol:
        """The real part."""
        return ops.real(self)

    @real.setter
    def real(self, value: Never) -> NoReturn:
        refuse_write("real")

    @property
    def imag(self) -> Symbol:
        """The imaginary part."""
        return ops.imag(self)

    @imag.setter
    def imag(self, value: Never) -> NoReturn:
        refuse_write("imag")

    def conj(self) -> Symbol:
        """The complex conjugate."""
        return ops.conj(self)

    # -- NumPy's functions

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        try:
            return self.graph.numpy_call(numpy_handlers.ufunc, ufunc, method, inputs, kwargs)
        except MissingOpError as error:
            raise keep_refusal(error, _getframe(1)) from None

    def __array_function__(self, function: Any, _: Any, args: Sequence[Any], kwargs: Any) -> Any:
        try:
            return self.graph.numpy_call(numpy_handlers.function, function, args, kwargs)
        except MissingOpError as error:
            raise keep_refusal(error, _getframe(1)) from None

    # -- protocols that need a value, which a symbol does not have before the graph runs

    def __bool__(self) -> bool:
        fix = (
            "choose with ops.where(condition, x, y), branch with graphir.control.cond, loop with "
            "graphir.control.while_loop, or run the graph first"
        )
        self._valueless("bool", fix)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        fix = (
            "call np.stack on a list of symbols; make an array that a symbol indexes an argument "
            "of the function, or a constant of the graph"
        )
        self._valueless("np.asarray", fix)

    def __len__(self) -> int:
        if not self.shape:
            self._valueless("len", "a 0-d symbol has no axis; its .shape is ()")
        if not isinstance(self.shape[0], int):
            self._valueless("len", f"its first axis is symbolic: .shape[0] is {self.shape[0]}")
        return self.shape[0]

    if TYPE_CHECKING:  # a type checker should refuse float(x) and loops over x
        __iter__: None
        __contains__: None
    else:

        def __float__(self) -> float:
            self._valueless("float", "keep computing with the symbol, or run the graph first")

        def __int__(self) -> int:
            fix = (
                "keep computing with the symbol, count in a loop with graphir.control.fori_loop, "
                "or run the graph first"
            )
            self._valueless("int", fix)

        __index__ = __int__

        def __complex__(self) -> complex:
            self._valueless("complex", "keep computing with the symbol, or run the graph first")

        def __iter__(self) -> NoReturn:
            fix = (
                "take slices x[i], or x.split(...), or an op over the axis, or graphir.control.scan"
            )
            self._valueless("iter", fix)

        def __setitem__(self, key: Any, value: Any) -> NoReturn:
            self._valueless("setitem", "choose with ops.where(mask, value, x), or concat the parts")

        def __contains__(self, item: object) -> bool:
            self._valueless("in", "use (x == item).any()")

    def _valueless(self, question: str, fix: str) -> NoReturn:
        error = ValuelessError(
            f"a symbol of op {self.op.name} has no value in Python",
            fix=fix,
            op=question,
            operands=(OperandInfo(self.name, self.type, self.location),),
            location=user_location(),
        )
        raise keep_refusal(error, _getframe(2))


class MissingAttributeError(GraphError, AttributeError):
    """A symbol has no such attribute or method."""


class ValuelessError(GraphError, TypeError):
    """Python code needs the value of a symbol; values exist only when the graph runs."""


def _one_or_all(arguments: tuple[Any, ...]) -> Any:
    """Return the shape or axes of a call: of one argument, which may be a sequence, or of all."""
    return arguments[0] if len(arguments) == 1 else arguments


def _symbol_at(graph: Graph, index: int) -> Symbol:
    return graph.symbols[index]
