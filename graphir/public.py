"""The public names of graphir, which `graphir/__init__.py` loads at the first use of one."""

from graphir import control, ops
from graphir.dtype_lattices.order import Lattice
from graphir.dtype_lattices.published import lattices
from graphir.dtypes import DType
from graphir.errors import (
    AxisError,
    CastWarning,
    ExecutionError,
    GraphError,
    GraphirError,
    OutOfMemoryError,
    ParseError,
    PromotionError,
    ShapeError,
)
from graphir.hints import ArrayOrNumber
from graphir.ir.graph import Graph
from graphir.ir.symbol import Symbol
from graphir.location import Location, Origin
from graphir.numpy_api import dispatch as dispatch  # sets the handlers of NumPy on symbols
from graphir.numpy_api.argument_trees import Slot, Static
from graphir.numpy_api.trace import Trace, trace
from graphir.ops.dims import Dim
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.promotion import (
    PromotionRules,
    implicit_cast_type,
    register,
    rule_sets,
    rules,
    set_default_rules,
)
from graphir.promotion.registry import lattice
from graphir.rule_reports.explanation import Explanation, explain
from graphir.rule_reports.laws import laws

__all__ = [
    "AxisError",
    "CastWarning",
    "DType",
    "Dim",
    "ExecutionError",
    "Explanation",
    "Graph",
    "GraphError",
    "GraphirError",
    "Lattice",
    "Location",
    "Op",
    "Origin",
    "OutOfMemoryError",
    "ParseError",
    "PromotionError",
    "PromotionRules",
    "ShapeError",
    "Slot",
    "Static",
    "Symbol",
    "TensorType",
    "Trace",
    "control",
    "explain",
    "implicit_cast",
    "implicit_cast_type",
    "lattice",
    "lattices",
    "laws",
    "ops",
    "register",
    "rule_sets",
    "rules",
    "set_default_rules",
    "trace",
]


def implicit_cast(a: ArrayOrNumber, b: ArrayOrNumber) -> tuple[Symbol, Symbol]:
    """Return two operands, both cast to their common dtype: `Graph.implicit_cast` of their graph.

    At least one operand is a Symbol. Raises GraphError where neither operand is a Symbol.
    """
    for operand in (a, b):
        if isinstance(operand, Symbol):
            return operand.graph.implicit_cast(a, b)
    raise GraphError("implicit_cast takes symbols", got=f"{a!r} and {b!r}")
