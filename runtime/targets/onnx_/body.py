"""The builder of an ONNX graph: nodes with source lines, constants, sizes and assertions."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.import_names import optional
from graphir.ops.attribute_record import array_content
from graphir.ops.dims import Dim, Size
from graphir.public import DType, Graph, Symbol, TensorType
from graphir.runtime.targets.emission import Names, bindings, unbound
from graphir.runtime.targets.onnx_.values import OnnxValue

_SMALL = frozenset(map(DType, ("int8", "int16", "uint8", "uint16")))
_HALF = frozenset({DType.int16, DType.uint16})
_UNSIGNED = frozenset({DType.uint32, DType.uint64})
_BFLOAT16 = frozenset({DType.bfloat16})

OPSET = 26
"""The first opset that has BitCast and CumProd, so that the most engines run it."""

LACKS: Mapping[str, frozenset[DType]] = {
    "CumSum": _SMALL | _UNSIGNED,
    "CumProd": _SMALL,
    "MatMul": _SMALL | _UNSIGNED,
    **dict.fromkeys(("Expand", "Tile"), _BFLOAT16),
    "Pad": _HALF,
    "Where": _HALF | _BFLOAT16 | {DType.bool, DType.uint64},
}
"""The dtypes for which an op has no kernel, in the format or in onnxruntime 1.32: they detour.

MatMul has a kernel for unsigned integers, but it fails on empty operands.
"""

_DETOURS = {
    DType.bool: DType.uint8,
    **dict.fromkeys(_SMALL, DType.int32),
    **dict.fromkeys(_UNSIGNED, DType.int64),
    DType.bfloat16: DType.float32,
}
"""The detour of each dtype, which is exact, except that uint64 wraps both ways."""

_ALL_DTYPES = ("Cast", "Shape", "Identity")
"""The ops that take all dtypes, also the narrow ones."""


def onnx_dtype(dtype: DType) -> DType:
    """Return the dtype in ONNX: uint64 for index and address, float32 for tensor_float32."""
    return DType.from_numpy(dtype.storage)


def passing_dtype(dtype: DType) -> DType:
    """Return the dtype as which values enter and leave subgraphs; narrow dtypes detour."""
    return _detour("If", dtype) or onnx_dtype(dtype)


class OnnxBody:
    """The nodes of a graph; each new node gets the metadata of the current symbol."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.names = graph, Names(graph.input_names)
        self.helper, self._arrays = (
            optional(f"onnx.{name}", "onnx", "the ONNX target")
            for name in ("helper", "numpy_helper")
        )
        self.nodes: list[Any] = []
        self.node_outputs = set[str]()
        self.initializers: list[Any] = []
        self.opsets = {"": OPSET}
        self.prefix, self.metadata, self.doc = "sizes", dict[str, str](), ""
        self._bindings = {name: (symbol, axis) for name, symbol, axis in bindings(graph)}
        self._numbers: dict[tuple[Any, ...], OnnxValue] = {}
        self._sizes: dict[Size, OnnxValue] = {}
        self._shapes: dict[tuple[Size, ...], OnnxValue] = {}
        self.inputs = {
            symbol: OnnxValue(self, name, onnx_dtype(symbol.dtype))
            for symbol, name in zip(graph.inputs, graph.input_names, strict=True)
        }

    def element(self, dtype: DType) -> int:
        """Return ONNX's number of an element type (TensorProto.DataType)."""
        return int(self.helper.np_dtype_to_tensor_dtype(dtype.storage))

    # -- nodes

    def op(
        self,
        kind: str,
        args: Sequence[OnnxValue],
        dtype: DType,
        of: tuple[int, int] = (0, 1),
        **attrs: Any,
    ) -> OnnxValue:
        """Add a node, with a detour if its dtype needs one, and return its result.

        `of` is the number of the result among the outputs of the node, and their count.
        """
        first = 1 if kind == "Where" else 0  # the condition of Where takes no detour
        by = args[first].dtype
        to = _detour(kind, by)
        if to is None:
            return self._node(kind, args, dtype, of, attrs)
        operands = [x.cast(to) if x.dtype is by and i >= first else x for i, x in enumerate(args)]
        result = self._node(kind, operands, to if dtype is by else dtype, of, attrs)
        return result.cast(dtype)

    def _node(
        self,
        kind: str,
        args: Sequence[OnnxValue],
        dtype: DType,
        of: tuple[int, int],
        attrs: Mapping[str, Any],
    ) -> OnnxValue:
        place, count = of
        return self.outputs_of(kind, args, [dtype] * count, attrs, place)[place]

    def outputs_of(
        self,
        kind: str,
        args: Sequence[OnnxValue],
        dtypes: Sequence[DType],
        attrs: Mapping[str, Any],
        place: int = 0,
    ) -> list[OnnxValue]:
        """Add a node without a detour, named as its output at `place`, and return its outputs."""
        names = [self.names.new(f"{self.prefix}/{kind}") for _ in dtypes]
        inputs = [x.name for x in args]
        node = self.helper.make_node(kind, inputs, names, names[place], self.doc or None, **attrs)
        self.helper.set_metadata_props(node, self.metadata)
        self.nodes.append(node)
        self.node_outputs.update(names)
        return [OnnxValue(self, *pair) for pair in zip(names, dtypes, strict=True)]

    def cast(self, x: OnnxValue, dtype: DType) -> OnnxValue:
        """Add the format's own conversion: float8 overflows as in IEEE 754, and e8m0 rounds."""
        small = {"saturate": 0} if dtype.narrow and dtype.bits == 8 else {}
        is_scale = dtype.format is not None and dtype.format.specials == "scale"
        scale = {"round_mode": "nearest"} if is_scale else {}
        return self._node("Cast", [x], dtype, (0, 1), {"to": self.element(dtype), **small, **scale})

    # -- graphs

    @contextmanager
    def scope(self) -> Generator[None]:
        """Collect the nodes of a subgraph, whose values cannot be used outside of it.

        Inside, `nodes` are those of the subgraph; constants belong to the main graph.
        """
        outside = self.nodes, self.node_outputs, self._sizes, self._shapes
        self.nodes, self.node_outputs = [], set()
        self._sizes, self._shapes = self._sizes.copy(), self._shapes.copy()
        try:
            yield
        finally:
            self.nodes, self.node_outputs, self._sizes, self._shapes = outside

    def distinct(self, values: Sequence[OnnxValue]) -> list[str]:
        """Return the names of values as outputs of the graph.

        An Identity node copies a value that no node of the graph makes, or that comes twice.
        """
        names: list[str] = []
        for value in values:
            if value.name in names or value.name not in self.node_outputs:
                value = self.op("Identity", [value], value.dtype)
            names.append(value.name)
        return names

    def described(self, name: str, type_: TensorType) -> Any:
        """Return a value's name and type; graphir's dtype is metadata if ONNX lacks the dtype."""
        shape = [dim if isinstance(dim, int) else str(dim) for dim in type_.shape]
        info = self.helper.make_tensor_value_info(name, self.element(type_.dtype), shape)
        if onnx_dtype(type_.dtype) is not type_.dtype:
            self.helper.set_metadata_props(info, {"graphir.dtype": str(type_.dtype)})
        return info

    # -- what is known

    def constant(self, array: NDArray[Any], dtype: DType, name: str = "") -> OnnxValue:
        """Add a constant; with a name, it gets the metadata of the current symbol."""
        new = self.names.new(name or f"constant/{len(self.initializers)}")
        tensor = self._arrays.from_array(np.asarray(array, order="C"), new)
        if name:
            tensor.doc_string = self.doc
            self.helper.set_metadata_props(tensor, self.metadata)
        self.initializers.append(tensor)
        return OnnxValue(self, new, dtype)

    def number(self, value: ArrayLike, dtype: DType) -> OnnxValue:
        """Return a 0-d constant; equal bits share a constant."""
        array = np.asarray(value).astype(dtype.storage)
        key = array_content(array)
        if key not in self._numbers:
            self._numbers[key] = self.constant(array, dtype)
        return self._numbers[key]

    def ints(self, values: Iterable[int]) -> OnnxValue:
        """Return a constant vector of sizes, axes or indices."""
        array = np.array([*values], np.int64)
        key = array_content(array)
        if key not in self._numbers:
            self._numbers[key] = self.constant(array, DType.int64)
        return self._numbers[key]

    # -- sizes

    def shape(self, shape: Sequence[Size]) -> OnnxValue:
        """Return sizes as a vector; symbolic sizes are computed from those of inputs."""
        if all(isinstance(dim, int) for dim in shape):
            return self.ints(shape)  # pyright: ignore[reportArgumentType]
        if len(shape) == 1:
            return self.size(shape[0])
        if (key := tuple(shape)) not in self._shapes:
            sizes = [self.size(dim) for dim in shape]
            self._shapes[key] = self.op("Concat", sizes, DType.int64, axis=0)
        return self._shapes[key]

    def size(self, dim: Size) -> OnnxValue:
        """Return a vector of one size. Raises TargetError if nothing binds a name in it."""
        if isinstance(dim, int):
            return self.ints([dim])
        if dim not in self._sizes:
            value = self._evaluate_dim(dim) if str(dim) not in self._bindings else self._solved(dim)
            negative = any(coefficient < 0 for _, coefficient in dim.terms)
            self._sizes[dim] = self.require(value, value >= 0) if negative else value
        return self._sizes[dim]

    def binds(self, symbol: Symbol, axis: int) -> bool:
        """Whether an axis of an input binds the name that is its dim."""
        source, place = self._bindings.get(str(symbol.shape[axis]), (None, 0))
        return source is symbol and place == axis

    def _evaluate_dim(self, dim: Dim, **values: int) -> Any:
        """A polynomial: of ints alone an int."""
        total: Any = 0
        for monomial, coefficient in dim.terms:
            term: Any = coefficient
            for atom in monomial:
                if isinstance(atom, str):
                    term = (
                        values[atom] if atom in values else self._size_of_name(dim, atom)
                    ) * term
                else:
                    term = self._evaluate_dim(atom.dividend, **values) // atom.divisor * term
            total = term + total
        return total

    def _size_of_name(self, dim: Dim, name: str) -> OnnxValue:
        if name not in self._bindings:
            raise unbound(self.graph, name, dim)
        name_dim = Dim.of(name)
        return self.size(name_dim)

    def _solved(self, name_dim: Dim) -> OnnxValue:
        """Return the value of a name, solved from the size of an axis that is linear in it."""
        name = str(name_dim)
        symbol, axis = self._bindings[name]
        whole = [self.inputs[symbol]]
        size = self.op("Shape", whole, DType.int64, start=axis, end=axis + 1)
        dim = symbol.shape[axis]
        if dim == name_dim:
            return size
        assert isinstance(dim, Dim)  # it binds a name
        at_0, at_1 = (self._evaluate_dim(dim, **{name: n}) for n in (0, 1))
        step = at_1 - at_0
        if isinstance(step, int):
            return (size - at_0) / step
        none = step.equal(0)
        return self.require((size - at_0) / none.where(1, step), ~none)

    # -- assertions

    def require(self, x: OnnxValue, condition: OnnxValue) -> OnnxValue:
        """Return x, and fail at run time with an index out of range unless the condition holds."""
        failures = (~condition).cast(DType.int64)
        zeros = self.op("Gather", [self.ints([0]), failures], DType.int64)
        zero = self.op("ReduceSum", [zeros], DType.int64, keepdims=0)
        shape = self.op("Shape", [x], DType.int64) + zero
        return self.op("Reshape", [x, shape], x.dtype, allowzero=1)

    def shaped(self, x: OnnxValue, shape: Sequence[Size]) -> OnnxValue:
        """Return x after an assertion of its shape."""
        if not shape:
            return x
        actual = self.op("Shape", [x], DType.int64)
        return self.require(x, actual.equal(self.shape(shape)))


def _detour(kind: str, dtype: DType) -> DType | None:
    """Return the detour dtype of an op on a dtype, or None; most ops on narrow dtypes detour."""
    if dtype.narrow:
        if kind in _ALL_DTYPES:
            return None
        return DType.float32 if dtype.is_float else DType.int8
    return _DETOURS[dtype] if dtype in LACKS.get(kind, ()) else None


Row = Callable[[OnnxBody, Symbol, Sequence[OnnxValue]], OnnxValue]
"""A function that adds the nodes of a symbol, given its operands, and returns its value."""
