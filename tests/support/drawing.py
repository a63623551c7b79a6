"""Hypothesis strategies of graphs: of every op in the catalogue, and of inputs to run them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st

from graphir import (
    DType,
    Graph,
    GraphirError,
    Op,
    PromotionError,
    PromotionRules,
    Symbol,
    TensorType,
    ops,
    rule_sets,
)
from graphir.ir.implied_casts import implied
from graphir.ir.symbol import ValuelessError
from graphir.ops import attributes as at
from graphir.ops import shape_rules as shapes
from graphir.ops.dims import Dim, Shape, evaluate
from graphir.ops.dtype_rules import LOOKUP, SCATTER
from graphir.ops.op import REQUIRED, Attr
from tests.support.strategies import (
    DIMS,
    NAMES,
    SIZES,
    STRONG,
    arrays,
    count,
    known,
    literals,
    pool,
    shapes_of,
)

RULES = tuple(each.name for each in rule_sets() if each.name != "explicit")


def _has_constants(rules: PromotionRules, dtype: DType) -> bool:
    try:
        return Graph(rules=rules).full(1, (), dtype).dtype is dtype
    except GraphirError:
        return False


DTYPES = {
    each.name: tuple(
        d for d in (*each.dtypes, *each.dtypes, *STRONG) if each.has(d) and _has_constants(each, d)
    )
    for each in rule_sets()
}
TF32 = ("even", "away")
LAYERS = ("", "encoder", 'a "quoted" \\ name\n')
LARGEST = 200  # elements of a value at the greatest sizes


class MisfitError(GraphirError):
    """What was drawn does not fit."""


class Drawing:
    """A graph in the making: draws operands and attributes from what an op's record says."""

    def __init__(self, draw: Any, graph: Graph, dtypes: Sequence[DType]) -> None:
        self.draw, self.graph, self.dtypes = draw, graph, dtypes
        self.integers = [d for d in dtypes if d.is_integer]
        self.live: list[Symbol] = []

    def one_of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def dtype(self) -> DType:
        return self.one_of(*self.dtypes)

    def dim(self) -> Any:
        return Dim.of(self.draw(DIMS))

    def grow(self, op: Op) -> Symbol | None:
        """Add the op on what is there; None where what was drawn does not fit it."""
        return self._added(lambda: self.apply(op))

    def again(self) -> Symbol | None:
        """Add what there is once more, or with its operands the other way round."""
        if not (computed := [x for x in self.live if x.args]):
            return None
        x = self.one_of(*computed)
        args = x.args[:: self.one_of(1, -1)]
        return self._added(lambda: x.op(*([args] if x.op.variadic else args), **x.attrs))

    def _added(self, make: Callable[[], Symbol]) -> Symbol | None:
        try:
            with self.graph.layer(layer) if (layer := self.one_of(*LAYERS)) else nullcontext():
                symbol = make()
            if count(symbol.shape) > LARGEST:
                return None
        except ValuelessError:  # a mistake made here
            raise
        except GraphirError:
            return None
        self.live.append(symbol)
        return symbol

    def apply(self, op: Op) -> Symbol:
        """The op on operands and attributes that are drawn."""
        if op is ops.input:
            return self.leaf(self.draw(shapes_of()))
        if op.kind == "creation":
            return self._created(op)
        x = self._first(op)
        attrs = self._attributes(op, x)
        return self._emitted(op, [x, *self._others(op, x, attrs)], attrs)

    # -- operands

    def leaf(self, shape: Shape, dtype: DType | None = None) -> Symbol:
        """A new input or constant."""
        dtype = dtype or self.dtype()
        if known(shape) and count(shape) <= 64 and self.one_of(False, True):
            return self.graph.constant(self.draw(arrays(dtype, shape)), dtype)
        name = self.one_of(None, f"a{len(self.graph.inputs)}")
        return self.graph.input(TensorType(dtype, shape), name=name)

    def places(self, shape: Shape) -> Symbol:
        """Indices, most of them in range."""
        dtype = self.one_of(*self.integers)
        if self.one_of(True, True, True, False):
            return self.leaf(shape, DType.bool).cast(dtype)
        return self.leaf(shape, dtype)

    def partner(self, shape: Shape) -> Any:
        """A value that broadcasts with a shape: one there is, a literal or a new one."""
        choice = self.one_of("there", "new", "literal", "there")
        if choice == "literal":
            return self.draw(literals())
        fitting = [x for x in self.live if _broadcast(x.shape, shape)]
        if choice == "there" and fitting:
            return self.one_of(*fitting)
        kept = shape[self.draw(st.integers(0, len(shape))) :]
        return self.leaf(tuple(1 if self.one_of(False, False, True) else dim for dim in kept))

    def _first(self, op: Op) -> Symbol:
        x = self.one_of(*self.live)
        if op.shape in (shapes.outer, shapes.searched):
            return x.flatten()
        if op.shape is shapes.squeezed:
            return x.unsqueeze(self.draw(st.integers(0, x.rank)))
        return x

    def _others(self, op: Op, x: Symbol, attrs: dict[str, Any]) -> list[Any]:
        """The operands after the first, of shapes that the op's shape rule allows."""
        number = self.draw(st.integers(0, 2)) if op.variadic else len(op.operands) - 1
        if op.shape is shapes.broadcast:
            return [self.partner(x.shape) for _ in range(number)]
        wanted = PARTNERS.get(op.shape, lambda drawing, shape, attrs: shape)
        found = [wanted(self, x.shape, attrs) for _ in range(number)]
        if op.shape is shapes.scattered:
            found[0] = found[1]
        if op.signature not in (LOOKUP, SCATTER):
            return [self.leaf(shape) for shape in found]
        return [*map(self.leaf, found[:-1]), self.places(found[-1])]

    def _emitted(self, op: Op, operands: list[Any], attrs: dict[str, Any]) -> Symbol:
        """The op, on operands cast to a dtype that it takes where it refuses what they have."""
        kinds = [d for d in self.dtypes if d.is_float], self.integers
        drawn = [self.one_of(*kind) for kind in kinds]
        for to in (None, operands[0].dtype, *drawn, DType.bool):
            wanted = [_suited(op, i, x, to) for i, x in enumerate(operands)]
            types = [x.type.cast(to) for x, to in zip(operands, wanted, strict=True) if to]
            if allowed(self.graph, op, types, attrs):
                before = len(self.graph)
                cast = [_cast(x, to) for x, to in zip(operands, wanted, strict=True)]
                made = op(cast, **attrs) if op.variadic else op(*cast, **attrs)
                if _is_computed(self.graph, made):
                    return made
                del self.graph.symbols[before:]
        raise MisfitError

    def _created(self, op: Op) -> Symbol:
        attrs: dict[str, Any] = {"dtype": self.dtype()}
        for attr in op.attrs[1:]:
            attrs[attr.name] = self._attribute(attr, None, attrs["dtype"])
        if op is ops.constant and attrs["value"].shape:
            attrs["literal"] = None
        with self.graph:
            return op(**attrs)

    # -- attributes

    def _attributes(self, op: Op, x: Symbol) -> dict[str, Any]:
        """Attributes for an op whose first operand is x, some of those with a default left out."""
        if op is ops.affine_view:
            return _windows(self, x.shape)
        return {
            attr.name: self._attribute(attr, x, x.dtype)
            for attr in op.attrs
            if attr.default is REQUIRED or self.one_of(True, True, False)
        }

    def _attribute(self, attr: Attr, x: Symbol | None, dtype: DType) -> Any:
        if names := attr.normalize.__closure__:  # one of some names
            return self.one_of(*names[0].cell_contents)
        if x is not None and not x.rank and attr.normalize in (at.axis, at.optional_axis):
            raise MisfitError
        return ATTRIBUTES[attr.normalize](self, () if x is None else x.shape, dtype, attr.name)


def _broadcast(*all_shapes: Shape) -> bool:
    try:
        return bool(shapes.broadcast_shapes(all_shapes)) or True
    except GraphirError:
        return False


def allowed(graph: Graph, op: Op, types: list[TensorType], attrs: dict[str, Any]) -> bool:
    """Whether operands of these types are; a literal that is left out will have such a type too."""
    try:
        op.infer(graph.rules, types + types[:1] * (len(op.operands) - len(types)), attrs)
    except GraphirError:
        return False
    return True


def _is_computed(graph: Graph, symbol: Symbol) -> bool:
    """Whether a kernel computes an op in the dtypes that the rules give it."""
    try:
        return not graph.rules.types_uncomputed or bool(implied(graph, symbol))
    except PromotionError:
        return False


def _suited(op: Op, position: int, x: Any, to: DType | None) -> DType | None:
    """An operand's dtype where those that join have `to`: conditions and indices have their own."""
    if not isinstance(x, Symbol):
        return None
    if op.signature.promoted is None or position in op.signature.promoted:
        return to or x.dtype
    return DType.bool if op.signature.other is DType.bool and to else x.dtype


def _cast(x: Any, to: DType | None) -> Any:
    return x if to is None or to is x.dtype else x.cast(to)


def _along(drawing: Drawing, shape: Shape, attrs: dict[str, Any]) -> Shape:
    """The shape but for one axis."""
    if not shape:
        raise MisfitError
    axis = attrs.get("axis", -1) % len(shape)
    return (*shape[:axis], drawing.dim(), *shape[axis + 1 :])


def _concat(drawing: Drawing, shape: Shape, attrs: dict[str, Any]) -> Shape:
    return _along(drawing, shape, {"axis": attrs.get("axis", 0)})


def _contracted(drawing: Drawing, shape: Shape, attrs: dict[str, Any]) -> Shape:
    axes = attrs.get("axes", 2)
    return shape[len(shape) - axes :] + drawing.draw(shapes_of(1))


Partner: TypeAlias = Callable[[Drawing, Shape, dict[str, Any]], Shape]
PARTNERS: dict[Any, Partner] = {
    shapes.matmul: lambda drawing, shape, attrs: (*shape[-1:], *drawing.draw(shapes_of(1))),
    shapes.tensordot: _contracted,
    shapes.outer: lambda drawing, shape, attrs: (drawing.dim(),),
    shapes.layer_norm: lambda drawing, shape, attrs: shape[-1:],
    shapes.searched: lambda drawing, shape, attrs: drawing.draw(shapes_of(2)),
    shapes.gathered: lambda drawing, shape, attrs: drawing.draw(shapes_of(2)),
    shapes.along: _along,
    shapes.scattered: _along,
    shapes.concatenated: _concat,
}


def _axes(drawing: Drawing, shape: Shape, dtype: DType, name: str) -> Any:
    rank = len(shape)
    if not rank:
        return None
    one = st.integers(-rank, rank - 1)
    some = st.lists(st.integers(0, rank - 1), unique=True)
    return drawing.draw(st.one_of(one, st.none(), some))


def _shape(drawing: Drawing, shape: Shape, dtype: DType, name: str) -> Shape:
    """A shape asked for: what there is with its ones stretched, other names, axes in front."""
    choice = drawing.one_of("as it is", "stretched", "in front", "drawn")
    if choice == "drawn" or not shape:
        return drawing.draw(shapes_of())
    if choice == "in front":
        return (drawing.dim(), *shape)
    return tuple(drawing.dim() if dim == 1 and choice == "stretched" else dim for dim in shape)


def _reshaped(drawing: Drawing, shape: Shape, dtype: DType, name: str) -> Any:
    same = [shape, shape[::-1], (1, *shape), (*shape, 1), (-1,), (*shape[:1], -1), shape[1:]]
    return drawing.one_of(*same)


def _limits(drawing: Drawing, shape: Shape, dtype: DType, name: str) -> Shape:
    if name == "start":
        return tuple(drawing.one_of(0, 0, 1, dim - 1) for dim in shape)
    return tuple(drawing.one_of(dim, dim, dim - 1, 2) for dim in shape)


def _windows(drawing: Drawing, shape: Shape) -> dict[str, Any]:
    """Attributes of a view with strides: windows, axes backward, a diagonal, a repeated axis."""
    rank = len(shape)
    sizes, steps, origin = [], [], [0] * rank
    units = [[int(k == axis) for k in range(rank)] for axis in range(rank)]
    windows: list[int] = []
    for axis, dim in enumerate(shape):
        windows.append(drawing.one_of(1, 2) if dim != 0 else 1)
        sizes.append(dim - (windows[-1] - 1))
        steps.append(units[axis])
        if isinstance(dim, int) and windows[-1] == 1 and dim and drawing.one_of(False, True):
            steps[-1], origin[axis] = [-step for step in units[axis]], dim - 1
    if rank > 1 and known(shape) and drawing.one_of(False, False, True):
        return {"shape": [min(shape)], "origin": [0] * rank, "steps": [[1] * rank]}
    if drawing.one_of(False, True):
        sizes, steps = [*sizes, *windows], [*steps, *units]
    if drawing.one_of(False, False, True):
        sizes, steps = [2, *sizes], [[0] * rank, *steps]
    return {"shape": sizes, "origin": origin, "steps": steps}


def _number(drawing: Drawing, shape: Shape, dtype: DType, name: str) -> Any:
    if name in ("start", "step"):
        return drawing.one_of(1, 2, 0, -1) if dtype.is_integer else drawing.one_of(0.1, 1.0, -2)
    return drawing.one_of(*pool(dtype)).item()


Attribute: TypeAlias = Callable[[Drawing, Shape, DType, str], Any]
ATTRIBUTES: dict[Any, Attribute] = {
    at.axis: lambda d, shape, dtype, name: d.draw(st.integers(-len(shape), len(shape) - 1)),
    at.optional_axis: lambda d, shape, dtype, name: d.one_of(None, *range(-1, len(shape))),
    at.new_axis: lambda d, shape, dtype, name: d.draw(st.integers(-len(shape) - 1, len(shape))),
    at.axes: _axes,
    at.flag: lambda d, shape, dtype, name: d.one_of(False, True),
    at.dtype: lambda d, shape, dtype, name: d.dtype(),
    at.optional_dtype: lambda d, shape, dtype, name: d.one_of(None, *d.dtypes, *d.integers),
    at.integer: lambda d, shape, dtype, name: d.one_of(0, 1, -1, 2, 5),
    at.natural: lambda d, shape, dtype, name: d.one_of(2, 1, 0),
    at.number: _number,
    at.optional_number: lambda d, shape, dtype, name: d.one_of(None, 1, 0.1),
    at.positive: lambda d, shape, dtype, name: d.one_of(0, 1e-5, 1e-3, 0.5),
    at.size: lambda d, shape, dtype, name: d.dim(),
    at.shape: _shape,
    at.new_shape: _reshaped,
    at.limits: _limits,
    at.per_axis: lambda d, shape, dtype, name: tuple(d.one_of(1, 2, 1, 0) for _ in shape),
    at.pairs: lambda d, shape, dtype, name: [(d.one_of(0, 1), d.one_of(1, 0)) for _ in shape],
    at.permutation: lambda d, shape, dtype, name: d.draw(st.permutations(range(len(shape)))),
    at.product_layout: lambda d, shape, dtype, name: None,
    at.sum_layout: lambda d, shape, dtype, name: None,
    at.contracted: lambda d, shape, dtype, name: d.draw(st.integers(0, len(shape))),
    at.constant: lambda d, shape, dtype, name: d.draw(
        arrays(dtype, d.draw(st.lists(st.integers(0, 3), max_size=2)))
    ),
}


class Program(NamedTuple):
    """A graph, and inputs that it takes."""

    graph: Graph
    inputs: tuple[np.ndarray[Any, Any], ...]


@st.composite
def graphs(
    draw: Any,
    op: Op | None = None,
    rules: Sequence[str] = RULES,
    dtypes: Sequence[DType] | None = None,
    catalogue: Sequence[Op] = tuple(ops.CATALOGUE.values()),
    steps: int = 6,
) -> Graph:
    """Graphs of up to `steps` ops of a catalogue; of `op` besides, wherever what is drawn fits it.

    Their dims depend on n and m. Literals, constants, layers, several outputs, all dtypes.
    """
    graph = Graph("drawn", rules=draw(st.sampled_from(rules)), tf32=draw(st.sampled_from(TF32)))
    drawing = Drawing(draw, graph, dtypes or DTYPES[graph.rules.name])
    drawing.live.append(graph.input(TensorType(drawing.dtype(), NAMES)))
    drawing.live.append(drawing.leaf(draw(shapes_of(2))))
    for _ in range(draw(st.integers(0, steps))):
        if draw(st.integers(0, 4)) == 4:
            drawing.again()
        else:
            drawing.grow(draw(st.sampled_from(catalogue)))
    tries = (drawing.grow(op) for _ in range(4 if op else 0))
    last = next((x for x in tries if x is not None), drawing.live[-1])
    more = draw(st.lists(st.sampled_from(drawing.live), max_size=2))
    graph.output(last, *more)
    return graph


@st.composite
def programs(draw: Any, **settings: Any) -> Program:
    """Graphs with inputs at small sizes, 0 and 1 among them."""
    graph: Graph = draw(graphs(**settings))
    return Program(graph, draw(inputs_of(graph)))


@st.composite
def inputs_of(draw: Any, graph: Graph) -> tuple[np.ndarray[Any, Any], ...]:
    """Inputs of a graph at small sizes, 0 and 1 among them."""
    sizes = {name: draw(st.sampled_from((2, 3, 1, 0))) for name in NAMES}
    if any(_negative(x.shape, sizes) for x in graph.inputs):
        sizes = SIZES
    return tuple(
        draw(arrays(x.dtype, [evaluate(dim, sizes) for dim in x.shape])) for x in graph.inputs
    )


def _negative(shape: Shape, sizes: dict[str, int]) -> bool:
    try:
        return count(shape, sizes) < 0
    except GraphirError:
        return True
