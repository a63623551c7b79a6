"""What graphir and the libraries answer to the same questions: the dtype of every op's result.

Each module here speaks for one library: `DTYPES` (what it calls our dtypes), `OPS` (its functions
by our names of ops), `result(op, *operands)` and `result_type(*operands)`. An operand is a dtype
and a shape, or a Python scalar; an answer is a DType, weak where the library says so, or None where
it raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from graphir import DType, Graph, GraphirError, PromotionRules, ops

Operand: TypeAlias = tuple[DType, tuple[int, ...]] | bool | int | float | complex


class Call(NamedTuple):
    """How an op is called when only dtypes matter: shapes of its operands, and attributes.

    `free` are the operands whose dtypes vary; the others have the dtype given in `fixed`.
    """

    shapes: tuple[tuple[int, ...], ...]
    attrs: dict[str, Any]
    fixed: Mapping[int, DType] = MappingProxyType({})

    @property
    def free(self) -> tuple[int, ...]:
        return tuple(i for i in range(len(self.shapes)) if i not in self.fixed)

    def operands(self, *dtypes: DType) -> list[Operand]:
        """The operands, the free ones of these dtypes."""
        given = iter(dtypes)
        return [
            (self.fixed[i] if i in self.fixed else next(given), shape)
            for i, shape in enumerate(self.shapes)
        ]


SQUARE = (2, 2)
_OF_OPERANDS: dict[str, Call] = {
    "searchsorted": Call(((2,), (2,)), {}),
    "layer_norm": Call((SQUARE, (2,), (2,)), {}),
    "outer": Call(((2,), (2,)), {}),
    "tensordot": Call((SQUARE, SQUARE), {"axes": 1}),
    "where": Call((SQUARE, SQUARE, SQUARE), {}, {0: DType.bool}),
    "gather": Call((SQUARE, (2,)), {}, {1: DType.int64}),
    "take_along": Call((SQUARE, SQUARE), {}, {1: DType.int64}),
    "scatter": Call((SQUARE, SQUARE, SQUARE), {}, {2: DType.int64}),
    "item": Call((SQUARE,), {"index": (1, 0)}),
    "affine_view": Call(
        (SQUARE,), {"shape": (2, 1, 2), "origin": (0, 0), "steps": ((1, 0), (0, 1), (0, 1))}
    ),
    "slice_update": Call((SQUARE, (2,)), {"start": (0, 0), "stop": (1, 2), "step": (1, 1)}),
    "index_update": Call((SQUARE, SQUARE, (2,)), {"axis": 0}, {2: DType.int64}),
    "index_add": Call((SQUARE, SQUARE, (2,)), {"axis": 0}, {2: DType.int64}),
    "numpy_sum": Call((SQUARE, SQUARE), {}, {1: DType.bool}),
    "concat": Call((SQUARE, SQUARE), {}),
    "stack": Call((SQUARE, SQUARE), {}),
    "reshape": Call((SQUARE,), {"shape": (4,)}),
    "broadcast_to": Call((SQUARE,), {"shape": (2, 2, 2)}),
    "rebind": Call((SQUARE,), {"shape": SQUARE}),
    "permute": Call((SQUARE,), {"dims": (1, 0)}),
    "squeeze": Call(((1, 2),), {"axis": 0}),
    "unsqueeze": Call((SQUARE,), {"axis": 0}),
    "slice": Call((SQUARE,), {"start": (0, 0), "stop": (1, 1), "step": (1, 1)}),
    "roll": Call((SQUARE,), {"shift": 1, "axis": 0}),
    "pad": Call((SQUARE,), {"padding": ((1, 0), (0, 0))}),
    "tile": Call((SQUARE,), {"repeats": (2, 1)}),
    "repeat": Call((SQUARE,), {"repeats": 2, "axis": 0}),
}
CALLS: dict[str, Call] = {
    name: _OF_OPERANDS.get(name, Call((SQUARE,) * len(op.operands), {}))
    for name, op in ops.CATALOGUE.items()
    if op.operands and name != "cast"
}
"""Every op that has operands, but `cast`, which says its dtype itself."""


def call_op(function: Callable[..., Any], name: str, operands: list[Any]) -> Any:
    """Call what a library has for an op, with the attributes that CALLS gives the op."""
    arguments = [operands] if ops.CATALOGUE[name].variadic else operands
    return function(*arguments, **CALLS[name].attrs)


def ours(rules: str | PromotionRules, name: str, *operands: Operand) -> DType | None:
    """What graphir answers: the dtype of the op's result; None where it refuses."""
    g = Graph(rules=rules)
    try:
        made = [g.input(*one) if isinstance(one, tuple) else one for one in operands]
        return call_op(ops.CATALOGUE[name], name, made).dtype
    except GraphirError:
        return None


class Deviation(NamedTuple):
    """Ops (names in one string) and dtypes for which graphir differs from a library, and why."""

    ops: str
    where: Callable[[Sequence[DType]], bool]
    why: str


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "bitwise_invert": operator.invert,
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": operator.abs,
    **COMPARISONS,
}
"""Python's operators by the names of their ops."""

IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv,
    "remainder": operator.imod,
    "pow": operator.ipow,
    "matmul": operator.imatmul,
    "bitwise_and": operator.iand,
    "bitwise_or": operator.ior,
    "bitwise_xor": operator.ixor,
    "left_shift": operator.ilshift,
    "right_shift": operator.irshift,
}
"""Python's in-place operators by the names of their ops."""


def in_place(rules: str | PromotionRules, name: str, x: Any, y: Any) -> Graph | None:
    """A graph of `x += y`, its inputs those of the operands that are arrays; None where refused."""
    g = Graph(rules=rules)
    try:
        x, y = (g.input(*one) if isinstance(one, tuple) else one for one in (x, y))
        g.output(IN_PLACE[name](x, y))
    except GraphirError:
        return None
    return g


Difference: TypeAlias = tuple[str, tuple[DType, ...], "DType | None", "DType | None"]


def differences(
    rules: str, result: Callable[..., DType | None], names: Iterable[str], dtypes: Sequence[DType]
) -> Iterator[Difference]:
    """Where the dtype of an op's result is not the library's: op, dtypes, our answer, theirs."""
    for name in names:
        for chosen in choices(len(CALLS[name].free), dtypes):
            operands = CALLS[name].operands(*chosen)
            answers = ours(rules, name, *operands), result(name, *operands)
            if answers[0] is not answers[1]:
                yield name, chosen, *answers


def choices(count: int, dtypes: Sequence[DType]) -> Iterator[tuple[DType, ...]]:
    """All dtypes or pairs of them; of three, those in which two are the same."""
    for chosen in product(dtypes, repeat=min(count, 2)):
        if count < 3:
            yield chosen
        else:
            a, b = chosen
            yield from dict.fromkeys([(a, b, b), (b, a, b), (a, a, b)])


def unexplained(
    found: Iterable[Difference], deviations: Sequence[Deviation]
) -> tuple[list[Difference], list[Deviation]]:
    """The differences that no deviation names, and the deviations that nothing needs."""
    unused, rest = list(deviations), []
    for one in found:
        reasons = [d for d in deviations if one[0] in d.ops.split() and d.where(one[1])]
        unused = [d for d in unused if d not in reasons]
        if not reasons:
            rest.append(one)
    return rest, unused


def any_complex(dtypes: Sequence[DType]) -> bool:
    return any(dtype.is_complex for dtype in dtypes)
