"""The selection x[mask] of a mask that is known only at run time."""

from __future__ import annotations

from typing import NoReturn

from graphir.errors import GraphError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.memory import TraceMemory
from graphir.ops.op import GraphValue


class SelectionValue(GraphValue):
    """The elements of a symbol where a mask is true; their number is known only at run time.

    An elementwise function of a selection computes on all elements of the symbol. `y[mask] =
    selection` keeps the elements where the mask is true. No other operation accepts a selection.
    """

    __slots__ = ("mask", "memory", "symbol")

    def __init__(self, memory: TraceMemory, symbol: Symbol, mask: Symbol) -> None:
        self.graph, self.memory, self.symbol, self.mask = memory.graph, memory, symbol, mask

    def refuse(self, what: str) -> NoReturn:
        """Raise GraphError: the size of the selection depends on values."""
        raise GraphError(
            "the size of x[mask] depends on values",
            op=what,
            got=str(self.symbol.type),
            fix="use np.where(mask, x, 0)",
        )


def is_same(a: Symbol, b: Symbol, depth: int = 8) -> bool:
    """Whether two symbols are equal expressions: equal ops on equal operands, up to a depth."""
    if a is b:
        return True
    if not depth or a.op is not b.op or len(a.args) != len(b.args) or a.type != b.type:
        return False
    if a.attrs is not b.attrs and a.attrs.content != b.attrs.content:
        return False
    return bool(a.args or (a.op.kind == "creation" and a.op.name != "input")) and all(
        is_same(x, y, depth - 1) for x, y in zip(a.args, b.args, strict=True)
    )
