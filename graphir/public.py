"""The public names of graphir, each imported at its first use."""

from typing import TYPE_CHECKING

from graphir.import_names import import_lazily

if TYPE_CHECKING:
    from graphir import control as control
    from graphir import ops as ops
    from graphir.dtype_lattices.order import Lattice as Lattice
    from graphir.dtype_lattices.published import lattices as lattices
    from graphir.dtypes import DType as DType
    from graphir.errors import AxisError as AxisError
    from graphir.errors import CastWarning as CastWarning
    from graphir.errors import ExecutionError as ExecutionError
    from graphir.errors import GraphError as GraphError
    from graphir.errors import GraphirError as GraphirError
    from graphir.errors import OutOfMemoryError as OutOfMemoryError
    from graphir.errors import ParseError as ParseError
    from graphir.errors import PromotionError as PromotionError
    from graphir.errors import ShapeError as ShapeError
    from graphir.ir.graph import Graph as Graph
    from graphir.ir.operands import implicit_cast as implicit_cast
    from graphir.ir.symbol import Symbol as Symbol
    from graphir.location import Location as Location
    from graphir.location import Origin as Origin
    from graphir.numpy_api.argument_trees import Slot as Slot
    from graphir.numpy_api.argument_trees import Static as Static
    from graphir.numpy_api.trace import Trace as Trace
    from graphir.numpy_api.trace import trace as trace
    from graphir.ops.dims import Dim as Dim
    from graphir.ops.op import Op as Op
    from graphir.ops.types import TensorType as TensorType
    from graphir.promotion import PromotionRules as PromotionRules
    from graphir.promotion import implicit_cast_type as implicit_cast_type
    from graphir.promotion import register as register
    from graphir.promotion import rule_sets as rule_sets
    from graphir.promotion import rules as rules
    from graphir.promotion import set_default_rules as set_default_rules
    from graphir.promotion.registry import lattice as lattice
    from graphir.rule_reports.explanation import Explanation as Explanation
    from graphir.rule_reports.explanation import explain as explain
    from graphir.rule_reports.laws import laws as laws

import_lazily(
    __name__,
    {
        "graphir.dtype_lattices.order": "Lattice",
        "graphir.dtype_lattices.published": "lattices",
        "graphir.dtypes": "DType",
        "graphir.errors": (
            "AxisError CastWarning ExecutionError GraphError GraphirError OutOfMemoryError "
            "ParseError PromotionError ShapeError"
        ),
        "graphir.ir.graph": "Graph",
        "graphir.ir.operands": "implicit_cast",
        "graphir.ir.symbol": "Symbol",
        "graphir.location": "Location Origin",
        "graphir.numpy_api.argument_trees": "Slot Static",
        "graphir.numpy_api.trace": "Trace trace",
        "graphir.ops.dims": "Dim",
        "graphir.ops.op": "Op",
        "graphir.ops.types": "TensorType",
        "graphir.promotion": (
            "PromotionRules implicit_cast_type register rule_sets rules set_default_rules"
        ),
        "graphir.promotion.registry": "lattice",
        "graphir.rule_reports.explanation": "Explanation explain",
        "graphir.rule_reports.laws": "laws",
        "graphir": "control ops",
    },
)
