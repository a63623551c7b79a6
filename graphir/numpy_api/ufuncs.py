"""Tables from NumPy's ufuncs to ops, the ufuncs of several ops, and those of Python's operators."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.ir.graph import Graph
from graphir.ir.operands import symbols_of
from graphir.ir.symbol import Symbol
from graphir.ops.op import Op, find_or_none
from graphir.semantics.library_calls import Function


class NamedOps(dict[Any, "Op | None"]):
    """The ops by NumPy's functions of their names: ufuncs, a method of ufuncs, or other functions.

    A look-up gives None for a function without an op. It finds the ops that are registered later,
    and those that another distribution declares by the function's name.
    """

    def __init__(self, kind: type, method: str = "") -> None:
        super().__init__()
        self.kind, self.method, self._ops_read = kind, method, 0
        self._read()

    def __missing__(self, function: Function) -> Op | None:
        if not self.method and function not in COMPOUNDS and function not in PARTS:
            find_or_none(function.__name__)
        self._read()
        return self.get(function)

    def _read(self) -> None:
        """Add the rows of the ops that the catalogue gained since the last call."""
        catalogue = list(ops.CATALOGUE.values())
        for op in catalogue[self._ops_read :]:
            for path in (op.name, *op.numpy.split()):
                name, _, method = path.partition(".")
                function = getattr(np, name, None)
                if method == self.method and isinstance(function, self.kind):
                    self.setdefault(function, op)
        self._ops_read = len(catalogue)


OPS = NamedOps(np.ufunc)
OPS[np._core.umath.clip] = ops.clip  # pyright: ignore
REDUCTIONS = NamedOps(np.ufunc, "reduce")
ACCUMULATIONS = NamedOps(np.ufunc, "accumulate")
FUNCTION_OPS = NamedOps(cast("Any", np.sinc).__class__)
"""The ops of functions that are no ufuncs; graphir.numpy_api.functions has those with settings."""
PARTS: dict[np.ufunc, tuple[Op, Op]] = {np.divmod: (ops.floor_divide, ops.remainder)}


class OpAdder(Protocol):
    """The interface that adds ops to a graph at a location in the program."""

    @property
    def graph(self) -> Graph:
        """The graph that receives the ops."""
        ...

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols and return its symbol."""
        ...

    def cast(self, x: Symbol, to: DType, operand: str = "", op: str = "") -> Symbol:
        """Return an op's operand in dtype `to`, with a cast only if its dtype differs."""
        ...

    def operands(self, op: Op, values: Sequence[Any]) -> tuple[Symbol, ...]:
        """Return the operands of an op as symbols."""
        ...


class DirectAdder:
    """An OpAdder that adds ops at the user's line, for functions that consist of several ops."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols and return its symbol."""
        return self.graph.apply(op, args, attrs)

    def cast(self, x: Symbol, to: DType, operand: str = "", op: str = "") -> Symbol:
        """Return the symbol in dtype `to`, with a cast only if its dtype differs."""
        return x if x.dtype is to else x.cast(to)

    def operands(self, op: Op, values: Sequence[Any]) -> tuple[Symbol, ...]:
        """Return the operands of an op as symbols."""
        return symbols_of(self.graph, op, values)


Compound: TypeAlias = Callable[..., Symbol]
"""The function of a compound ufunc, called `(builder, *operands)` on symbols."""


# -- ufuncs that consist of several ops


def _in_floats(op: Op) -> Compound:
    """Return the function of a ufunc that converts integers to floats, by an op that keeps them."""

    def compute(build: OpAdder, x: Symbol) -> Symbol:
        return build.emit(op, (_floating(build, x, op, "x"),))

    return compute


def _floating(build: OpAdder, x: Symbol, op: Op, operand: str) -> Symbol:
    return build.cast(x, build.graph.rules.floating(x.dtype, op.name), operand, op.name)


def _degrees(build: OpAdder, x: Symbol) -> Symbol:
    """The product with 180 / pi: below float64 the quotient in float32, as npy_rad2degf has it."""
    x = _floating(build, x, ops.multiply, "lhs")
    if x.dtype is DType.float64:
        return build.emit(ops.multiply, build.operands(ops.multiply, (x, 180 / math.pi)))
    factor = float(np.float32(180) / np.float32(math.pi))
    wide = build.cast(x, DType.float32, "lhs", "multiply")
    product = build.emit(ops.multiply, build.operands(ops.multiply, (wide, factor)))
    return build.cast(product, x.dtype)


def _exp2(build: OpAdder, x: Symbol) -> Symbol:
    x = _floating(build, x, ops.pow, "rhs")
    if x.dtype.is_complex:
        raise PromotionError(f"no op computes it for {x.dtype}", fix="write np.power(2, x)")
    return build.emit(ops.pow, build.operands(ops.pow, (2.0, x)))


def _known_of(op: Op) -> Compound:
    """Return the function of fmax or fmin: where one operand is NaN, the other operand."""

    def choose(build: OpAdder, x: Symbol, y: Symbol) -> Symbol:
        both = build.emit(op, (x, y))
        left = build.emit(ops.where, (build.emit(ops.is_nan, (x,)), y, both))
        return build.emit(ops.where, (build.emit(ops.is_nan, (y,)), x, left))

    return choose


def _float_power(build: OpAdder, x: Symbol, y: Symbol) -> Symbol:
    wide = DType.complex128 if x.dtype.is_complex or y.dtype.is_complex else DType.float64
    args = build.cast(x, wide, "lhs", "pow"), build.cast(y, wide, "rhs", "pow")
    return build.emit(ops.pow, args)


def _product(left: Sequence[int], right: Sequence[int], conjugate: bool = True) -> Compound:
    """Return the function of a product of vectors and matrices, by matmul, as NumPy's loops do.

    `left` and `right` are the new axes of the operands, which the result loses again.
    """

    def compute(build: OpAdder, x: Symbol, y: Symbol) -> Symbol:
        x, y = build.operands(ops.matmul, (x, y))
        if conjugate and x.dtype.is_complex:
            if not right:
                raise PromotionError("no op has NumPy's bits for it", fix="write x.conj() @ y")
            x = build.emit(ops.conj, (x,))
        for axis in left:
            x = build.emit(ops.unsqueeze, (x,), axis=x.rank + 1 + axis)
        for axis in right:
            y = build.emit(ops.unsqueeze, (y,), axis=y.rank + 1 + axis)
        product = build.emit(ops.matmul, (x, y))
        for axis in (*right, *((-1,) if right and left else left)):
            product = build.emit(ops.squeeze, (product,), axis=product.rank + axis)
        return product

    return compute


REAL: dict[np.ufunc, str] = {
    np.fabs: "np.abs takes it",
    **dict.fromkeys((np.rad2deg, np.degrees), "multiply by the factor"),
}
"""The ufuncs of COMPOUNDS that refuse complex numbers, each with the alternative."""

COMPOUNDS: dict[np.ufunc, Compound] = {
    np.fabs: _in_floats(ops.abs),
    np.rint: _in_floats(ops.round),
    np.rad2deg: _degrees,
    np.degrees: _degrees,
    np.exp2: _exp2,
    np.fmax: _known_of(ops.maximum),
    np.fmin: _known_of(ops.minimum),
    np.float_power: _float_power,
    np.vecdot: _product((-2,), (-1,)),
    np.matvec: _product((), (-1,), conjugate=False),
    np.vecmat: _product((-2,), (), conjugate=True),
}


# -- Python's operators, each with its function and NumPy's ufunc

_PYTHON: Any = operator

BINARY: dict[str, tuple[Any, Any]] = {
    "add": (_PYTHON.add, np.add),
    "sub": (_PYTHON.sub, np.subtract),
    "mul": (_PYTHON.mul, np.multiply),
    "truediv": (_PYTHON.truediv, np.divide),
    "floordiv": (_PYTHON.floordiv, np.floor_divide),
    "mod": (_PYTHON.mod, np.remainder),
    "divmod": (divmod, np.divmod),
    "pow": (_PYTHON.pow, np.power),
    "matmul": (_PYTHON.matmul, np.matmul),
    "and": (_PYTHON.and_, np.bitwise_and),
    "or": (_PYTHON.or_, np.bitwise_or),
    "xor": (_PYTHON.xor, np.bitwise_xor),
    "lshift": (_PYTHON.lshift, np.left_shift),
    "rshift": (_PYTHON.rshift, np.right_shift),
}
"""The operators that have a reflected form."""
MUL, POW, MATMUL = (BINARY[name][0] for name in ("mul", "pow", "matmul"))
COMPARISONS: dict[str, tuple[Any, Any]] = {
    "lt": (_PYTHON.lt, np.less),
    "le": (_PYTHON.le, np.less_equal),
    "gt": (_PYTHON.gt, np.greater),
    "ge": (_PYTHON.ge, np.greater_equal),
    "eq": (_PYTHON.eq, np.equal),
    "ne": (_PYTHON.ne, np.not_equal),
}
UNARY: dict[str, tuple[Any, Any]] = {
    "neg": (_PYTHON.neg, np.negative),
    "pos": (_PYTHON.pos, np.positive),
    "abs": (_PYTHON.abs, np.absolute),
    "invert": (_PYTHON.invert, np.invert),
}
UFUNCS = dict([*BINARY.values(), *COMPARISONS.values(), *UNARY.values()])
"""The ufunc of each operator."""
