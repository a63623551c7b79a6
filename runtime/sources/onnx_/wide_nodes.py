"""Nodes of ONNX in wide arithmetic, for audits: the same node in float64, and convolutions.

An operand stays narrow where the schema of the op takes no float64 for it, as the scales of Resize.
Constants are widened, and so are the element types among the attributes.

Neither onnxruntime nor the evaluator is fast at convolutions in float64. Here a convolution is the
sum over the taps of its kernel: the products of the kernels' matrices at a tap and the elements
that the tap reads, a strided view. The adjoints are sums of products over the same views.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, ExecutionError
from graphir.runtime.sources.onnx_.messages import (
    AttributeProto,
    GraphProto,
    NodeProto,
    Onnx,
    TensorProto,
)
from graphir.runtime.sources.onnx_.model import domain_of, graphs_of, text_of

CONVOLUTIONS = {"Conv": False, "ConvTranspose": True}
"""The ops of convolutions, and whether they are transposed."""

ELEMENT_TYPES = frozenset({"to", "dtype", "output_dtype", "output_datatype", "stash_type"})
"""The attributes, of ONNX's ops and of com.microsoft's, whose numbers are element types."""

RANDOM = {
    **dict.fromkeys(("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), ()),
    **dict.fromkeys(("Bernoulli", "Multinomial"), (0,)),
}
"""The ops of draws, with the positions of the parameters of choices."""

_WIDE = {1: 11, 10: 11, 16: 11, 14: 15}
"""ONNX's numbers of narrow floats and complex numbers, and of the wide ones."""

_FLOAT64 = 11
_NARROW = {DType.float16: 10, DType.bfloat16: 16, DType.float32: 1, DType.float64: _FLOAT64}
"""ONNX's numbers of floats to which all engines cast float64."""


def convolution_of(node: NodeProto) -> Convolution | None:
    """Return the convolution that a node is; None for other nodes."""
    if domain_of(node) or node.op_type not in CONVOLUTIONS:
        return None
    values = {each.name: _value_of(each) for each in node.attribute}
    return Convolution(values, CONVOLUTIONS[node.op_type])


def integer_product(node: NodeProto, operands: Sequence[Any]) -> Any:
    """Return the exact product of a node MatMulInteger or ConvInteger; None of other nodes.

    Sums of products of bytes are exact in float64, unless they have 2**37 terms.
    """
    if domain_of(node) or node.op_type not in ("MatMulInteger", "ConvInteger"):
        return None
    x, w, *zeros = (np.asarray(each, np.float64) for each in operands)
    names = [name for name in node.input[2:] if name]
    by_name = dict(zip(names, zeros, strict=True))
    of_x, of_w = (by_name.get(name) for name in (*node.input[2:], "", "")[:2])
    is_product = node.op_type == "MatMulInteger"
    if of_x is not None:
        x = x - (of_x[..., None] if is_product and of_x.ndim else of_x)
    if of_w is not None:
        w = w - (of_w if is_product or not of_w.ndim else of_w.reshape(-1, *(1,) * (w.ndim - 1)))
    if is_product:
        return (x @ w).astype(np.int64)
    values = {each.name: _value_of(each) for each in node.attribute}
    return Convolution(values, False)(x, w).astype(np.int64)


def _value_of(attribute: AttributeProto) -> Any:
    if attribute.type == 3:  # text
        return text_of(attribute.s)
    return tuple(attribute.ints) if attribute.type == 7 else attribute.i


def narrow_places(onnx: Onnx, node: NodeProto, opsets: Mapping[str, int]) -> set[int]:
    """Return the positions of the operands for which the op takes no float64."""
    domain = domain_of(node)
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets[domain], domain)
    except Exception as error:  # SchemaError, of an op that onnx does not define
        raise ExecutionError(f"onnx has no schema of {node.op_type}") from error
    formal = [*schema.inputs]
    places = range(len(node.input))
    accepted = [formal[min(i, len(formal) - 1)].types for i in places] if formal else []
    return {i for i, types in enumerate(accepted) if "tensor(double)" not in types}


def takes_floats(onnx: Onnx, node: NodeProto, name: str, opsets: Mapping[str, int]) -> bool:
    """Whether a node, or one in its graphs, takes an operand where its op takes float64 too.

    Ends of slices, shapes and axes are integers alone.
    """
    places = {i for i, each in enumerate(node.input) if each == name}
    return not places <= narrow_places(onnx, node, opsets) or any(
        any(each.name == name for each in graph.output)
        or any(takes_floats(onnx, each, name, opsets) for each in graph.node)
        for graph in graphs_of(node)
    )


class WideNode:
    """A node in float64: its model, and the dtypes that its operands have there."""

    def __init__(self, onnx: Onnx, node: NodeProto, types: Mapping[str, Any], model: Any) -> None:
        """`model` is that of the node alone, with `types` of its operands, which it has inside."""
        self.model = onnx.ModelProto.FromString(model.SerializeToString())
        self._onnx = onnx
        opsets = {each.domain: each.version for each in self.model.opset_import}
        narrow = narrow_places(onnx, node, opsets)
        self.dtypes: list[np.dtype[Any]] = []
        inputs = {value.name: value for value in self.model.graph.input}
        places = {name: i for i, name in reversed([*enumerate(node.input)])}
        for name, type_ in types.items():
            number = type_.tensor_type.elem_type
            wide = number if places.get(name) in narrow else _WIDE.get(number, number)
            inputs[name].type.tensor_type.elem_type = wide
            self.dtypes.append(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(wide)))
        for each in self.model.graph.node:
            self._widen(each)

    def _widen(self, node: NodeProto) -> None:
        """Widen the constants and the element types of a node, and of the graphs inside it."""
        for attribute in node.attribute:
            if attribute.name in ELEMENT_TYPES:
                attribute.i = _WIDE.get(attribute.i, attribute.i)
            elif attribute.HasField("t"):
                self._widen_tensor(attribute.t)
            elif node.op_type == "Constant" and attribute.name.startswith("value_float"):
                numbers = [*attribute.floats] or attribute.f
                tensor = self._onnx.numpy_helper.from_array(np.asarray(numbers, np.float64))
                attribute.CopyFrom(self._onnx.helper.make_attribute("value", tensor))
        for graph in graphs_of(node):
            for tensor in graph.initializer:
                self._widen_tensor(tensor)
            for value in (*graph.input, *graph.output, *graph.value_info):
                type_ = value.type.tensor_type
                type_.elem_type = _WIDE.get(type_.elem_type, type_.elem_type)
            for inner in graph.node:
                self._widen(inner)

    def _widen_tensor(self, tensor: TensorProto) -> None:
        if tensor.data_type in _WIDE:
            helper, name = self._onnx.numpy_helper, tensor.name
            array = helper.to_array(tensor)
            wide = np.complex128 if array.dtype.kind == "c" else np.float64
            tensor.CopyFrom(helper.from_array(array.astype(wide), name))

    def rounding(self, dtype: DType | None) -> Any:
        """Return the model whose graphs round each float inside to a dtype; without one the model.

        Raises ExecutionError for a dtype of which ONNX has no casts, and values of unknown types.
        """
        if dtype is None:
            return self.model
        if dtype not in _NARROW:
            raise ExecutionError(f"has no form in {dtype}")
        model = self._onnx.shape_inference.infer_shapes(self.model)
        for node in model.graph.node:
            for graph in graphs_of(node):
                self._round(graph, _NARROW[dtype])
        return model

    def _round(self, graph: GraphProto, number: int) -> None:
        """Insert casts to an element type and back behind the floats of a graph."""
        typed = (*graph.input, *graph.output, *graph.value_info)
        types = {x.name: x.type.tensor_type.elem_type for x in typed}
        cast, nodes = self._onnx.helper.make_node, list[Any]()

        def append_casts(source: str, name: str) -> None:
            narrow = f"{name}/narrow"
            nodes.append(cast("Cast", [source], [narrow], to=number))
            nodes.append(cast("Cast", [narrow], [name], to=_FLOAT64))

        for tensor in graph.initializer:
            if tensor.data_type == _FLOAT64:
                name, tensor.name = tensor.name, f"{tensor.name}/wide"
                append_casts(tensor.name, name)
        for node in graph.node:
            for inner in graphs_of(node):
                self._round(inner, number)
            names = [name for name in node.output if name]
            if not all(types.get(name) for name in names):
                raise ExecutionError(f"holds {node.op_type} inside, whose results have no types")
            floats = [name for name in names if types[name] == _FLOAT64]
            node.output[:] = [f"{x}/wide" if x in floats else x for x in node.output]
            nodes.append(node)
            for name in floats:
                append_casts(f"{name}/wide", name)
        del graph.node[:]
        graph.node.extend(nodes)

    def operands(self, arrays: Sequence[Any]) -> Iterable[Any]:
        """Return wide operands in the dtypes of the model; ExecutionError if one does not fit."""
        for array, dtype in zip(arrays, self.dtypes, strict=True):
            narrow = array.astype(dtype)
            if dtype.kind != "b" and not np.array_equal(
                narrow.astype(array.dtype), array, equal_nan=dtype.kind in "fc"
            ):
                raise ExecutionError(f"takes {dtype} alone, in which a wide operand does not fit")
            yield narrow


Floats: TypeAlias = NDArray[np.float64]


class Convolution:
    """The node Conv, or ConvTranspose, with the attributes of its node.

    The operands are x[batch, channels, ...], the kernels and the bias. Kernels of Conv are
    w[features, channels / groups, ...], those of ConvTranspose w[channels, features / groups, ...].
    """

    def __init__(self, attributes: Mapping[str, Any], is_transposed: bool) -> None:
        self._attributes, self._is_transposed = attributes, is_transposed

    def __call__(self, x: Floats, w: Floats, b: Floats | None = None) -> Floats:
        """Return the result."""
        taps = self._taps(x, w)
        y = taps.backward(x, w) if self._is_transposed else taps.forward(x, w)
        return y if b is None else y + b.reshape(-1, *(1,) * (x.ndim - 2))

    def adjoints(self, x: Floats, w: Floats, b: Floats | None, adjoint: Floats) -> list[Floats]:
        """Return the adjoints of the operands, from that of the result."""
        taps = self._taps(x, w)
        if self._is_transposed:
            of_x, of_w = taps.forward(adjoint, w), taps.of_kernels(adjoint, x, w.shape)
        else:
            of_x, of_w = taps.backward(adjoint, w), taps.of_kernels(x, adjoint, w.shape)
        of_b = [] if b is None else [adjoint.sum(axis=(0, *range(2, x.ndim)))]
        return [of_x, of_w, *of_b]

    def _taps(self, x: Floats, w: Floats) -> _Taps:
        """Return the taps of the kernels, whose long side is the operand, or the result."""
        axes, groups = x.ndim - 2, int(self._attributes.get("group", 1))
        strides = self._attributes.get("strides", (1,) * axes)
        dilations = self._attributes.get("dilations", (1,) * axes)
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
        if self._is_transposed:
            sizes, pads = self._transposed_sizes(x, strides, spans)
            shape = (x.shape[0], w.shape[1] * groups, *sizes)
            return _Taps(shape, x.shape[2:], w.shape[2:], strides, dilations, pads, groups)
        pads = self._pads(x.shape[2:], strides, spans)
        short = [
            (n + low + high - span) // s + 1
            for n, (low, high), span, s in zip(x.shape[2:], pads, spans, strides, strict=True)
        ]
        return _Taps(x.shape, short, w.shape[2:], strides, dilations, pads, groups)

    def _pads(
        self, sizes: Sequence[int], strides: Sequence[int], spans: Sequence[int]
    ) -> list[tuple[int, int]]:
        mode, axes = self._attributes.get("auto_pad", "NOTSET"), len(sizes)
        if mode in ("NOTSET", "VALID"):
            flat = self._attributes.get("pads", ()) if mode == "NOTSET" else ()
            flat = tuple(flat) or (0,) * 2 * axes
            return [*zip(flat[:axes], flat[axes:], strict=True)]
        pads: list[tuple[int, int]] = []
        for n, s, span in zip(sizes, strides, spans, strict=True):
            total = max(0, (-(-n // s) - 1) * s + span - n)
            small, large = total // 2, total - total // 2
            pads.append((small, large) if mode == "SAME_UPPER" else (large, small))
        return pads

    def _transposed_sizes(
        self, x: Floats, strides: Sequence[int], spans: Sequence[int]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the sizes of the result of a transposed convolution, and its pads."""
        if self._attributes.get("auto_pad", "NOTSET") != "NOTSET" or (
            "output_shape" in self._attributes
        ):
            raise ExecutionError("a transposed convolution of a stated size has no wide form")
        more = self._attributes.get("output_padding", (0,) * len(spans))
        pads = self._pads(x.shape[2:], strides, spans)
        sizes = [
            s * (n - 1) + extra + span - low - high
            for n, s, extra, span, (low, high) in zip(
                x.shape[2:], strides, more, spans, pads, strict=True
            )
        ]
        return sizes, pads


class _Taps:
    """The sums over the taps of a convolution from its long side to its short one, and back.

    `shape` is that of the long side, and `short` has the sizes of the other.
    """

    def __init__(
        self,
        shape: Sequence[int],
        short: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        pads: Sequence[tuple[int, int]],
        groups: int,
    ) -> None:
        self.short, self.groups = short, groups
        sizes = [n + low + high for n, (low, high) in zip(shape[2:], pads, strict=True)]
        pairs = zip(shape[2:], pads, strict=True)
        self._inside: Any = (..., *(slice(low, low + n) for n, (low, _) in pairs))
        self._views: dict[tuple[int, ...], Any] = {}  # what each tap reads of the padded long side
        for tap in product(*map(range, kernel)):
            starts = [d * k for d, k in zip(dilations, tap, strict=True)]
            ends = [at + s * (m - 1) + 1 for at, s, m in zip(starts, strides, short, strict=True)]
            self._views[tap] = (..., *map(slice, starts, ends, strides))
            sizes = [*map(max, sizes, ends)]
        self._padded_shape = *shape[:2], *sizes

    def forward(self, x: Floats, w: Floats) -> Floats:
        """Return the short side from the long one."""
        long, result = self._padded(x), np.zeros((len(x), w.shape[0], *self.short))
        sums = self._grouped(result)
        multiply = np.multiply if w.shape[1] == 1 else np.matmul  # of one channel, which is faster
        for tap, view in self._views.items():
            sums += multiply(self._matrix(w, tap), self._grouped(long[view]))
        return result

    def backward(self, y: Floats, w: Floats) -> Floats:
        """Return the adjoint of the long side, or the result of a transposed convolution."""
        long, part = np.zeros(self._padded_shape), self._grouped(y)
        for tap, view in self._views.items():
            target = long[view]
            target += (np.swapaxes(self._matrix(w, tap), -1, -2) @ part).reshape(target.shape)
        return np.ascontiguousarray(long[self._inside])

    def of_kernels(self, x: Floats, y: Floats, shape: tuple[int, ...]) -> Floats:
        """Return the adjoint of the kernels, from the long side and the adjoint of the short."""
        long, result, part = self._padded(x), np.zeros(shape), self._grouped(y)
        for tap, view in self._views.items():
            products = (part @ np.swapaxes(self._grouped(long[view]), -1, -2)).sum(axis=0)
            result[(..., *tap)] = products.reshape(shape[:2])
        return result

    def _padded(self, x: Floats) -> Floats:
        long = np.zeros(self._padded_shape)
        long[self._inside] = x
        return long

    def _grouped(self, x: Floats) -> Floats:
        """Return an array as [batch, group, channel, place]."""
        return x.reshape(len(x), self.groups, x.shape[1] // self.groups, -1)

    def _matrix(self, w: Floats, tap: tuple[int, ...]) -> Floats:
        """Return the matrices of a tap, one for each group."""
        return w[(..., *tap)].reshape(self.groups, w.shape[0] // self.groups, w.shape[1])
