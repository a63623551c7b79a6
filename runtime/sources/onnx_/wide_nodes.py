"""Nodes of ONNX in wide arithmetic, for audits: the same node in float64, and convolutions.

An operand stays narrow where the schema of the op takes no float64 for it, as the scales of Resize.
Constants are widened, and so are the element types among the attributes.

Neither onnxruntime nor the evaluator is fast at convolutions in float64. Here a convolution is a
product of matrices, the kernels and the elements that the taps of a kernel read (im2col: K.
Chellapilla et al., High performance convolutional neural networks, 2006). Each tap reads a strided
view. The adjoints are sums of products over the same views.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.public import DType, ExecutionError
from graphir.runtime.sources.onnx_.model import domain_of, graphs_of, text_of
from graphir.runtime.sources.onnx_.wire_format import (
    AttributeProto,
    GraphProto,
    NodeProto,
    Onnx,
    TensorProto,
)

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


def quantized_lstm(node: NodeProto, operands: Mapping[str, Any]) -> list[Any] | None:
    """Return the results of onnxruntime's DynamicQuantizeLSTM in float64; None of other nodes.

    The node quantizes its input, and at each step the state, to unsigned bytes of one scale, as
    DynamicQuantizeLinear does. Raises ExecutionError for sequence lengths, peepholes, and
    activations that are not the default ones.
    """
    if domain_of(node) != "com.microsoft" or node.op_type != "DynamicQuantizeLSTM":
        return None
    values = {each.name: _value_of(each) for each in node.attribute}
    places: list[Any] = [operands.get(name) for name in node.input]  # None without a name
    x, w, r, bias, lengths, first, first_cell, peepholes, *scales = places
    settings = {name for name in values if "activation" in name or name == "clip"}
    if settings or values.get("input_forget") or lengths is not None or peepholes is not None:
        raise ExecutionError("has a form that is not computed in float64")
    (w, r), size = _dequantized((w, r), scales), r.shape[1]
    directions, (steps, batch) = len(w), x.shape[:2]
    shape = directions, batch, size
    zeros, results = np.zeros(shape), np.zeros((steps, *shape))
    states = [np.array(zeros if each is None else each) for each in (first, first_cell)]
    bias = np.zeros((directions, 2, 4 * size)) if bias is None else bias
    entering = _in_bytes(x) @ w[:, None] + bias.reshape(directions, 1, 2, 1, -1).sum(2)
    for d in range(directions):
        is_backward = d == 1 or values.get("direction") == "reverse"
        hidden, cell = (state[d] for state in states)
        for step in range(steps)[:: -1 if is_backward else 1]:
            gates = np.split(entering[d, step] + _in_bytes(hidden) @ r[d], 4, axis=-1)
            enters, leaves, stays = 1 / (1 + np.exp(-np.stack(gates[:3])))
            cell = stays * cell + enters * np.tanh(gates[3])
            hidden = results[step, d] = leaves * np.tanh(cell)
        states[0][d], states[1][d] = hidden, cell
    outputs = zip(node.output, (results, *states), strict=False)
    return [array for name, array in outputs if name]


def _dequantized(factors: Iterable[Any], scales: Sequence[Any]) -> list[Any]:
    """Return factors of bytes as numbers, by the scale and zero point of each direction."""
    wide = [each.reshape(len(each), 1, -1) for each in scales]
    pairs = zip(factors, wide[::2], wide[1::2], strict=True)
    return [(factor - zero) * scale for factor, scale, zero in pairs]


def _in_bytes(x: NDArray[Any]) -> Any:
    """Return what DynamicQuantizeLinear and DequantizeLinear make of an array."""
    low, high = x.min(initial=0.0), x.max(initial=0.0)
    scale = (high - low) / 255 or 1.0
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


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

BLOCK = 1 << 22
"""The bytes of what taps read that a product takes at once."""


class Convolution:
    """The node Conv, or ConvTranspose, with the attributes of its node.

    The operands are x[batch, channels, ...], the kernels and the bias. Kernels of Conv are
    w[features, channels / groups, ...], those of ConvTranspose w[channels, features / groups, ...].
    """

    def __init__(self, attributes: Mapping[str, Any], is_transposed: bool) -> None:
        self._attributes, self._is_transposed = attributes, is_transposed
        self.groups = int(attributes.get("group", 1))

    def __call__(self, x: Floats, w: Floats, b: Floats | None = None) -> Floats:
        """Return the result."""
        taps = _Taps(self._sizes(x, w), self.groups)
        y = taps.backward(x, w) if self._is_transposed else taps.forward(x, w)
        return y if b is None else y + b.reshape(-1, *(1,) * (x.ndim - 2))

    def adjoints(self, x: Floats, w: Floats, b: Floats | None, adjoint: Floats) -> list[Floats]:
        """Return the adjoints of the operands, from that of the result."""
        taps = _Taps(self._sizes(x, w), self.groups)
        if self._is_transposed:
            of_x, of_w = taps.forward(adjoint, w), taps.of_kernels(adjoint, x, w.shape)
        else:
            of_x, of_w = taps.backward(adjoint, w), taps.of_kernels(x, adjoint, w.shape)
        of_b = [] if b is None else [adjoint.sum(axis=(0, *range(2, x.ndim)))]
        return [of_x, of_w, *of_b]

    def _sizes(self, x: Floats, w: Floats) -> _Sizes:
        """Return the sizes of the convolution whose operand, or whose result, is the long side."""
        kernel, axes = w.shape[2:], x.ndim - 2
        strides = tuple(self._attributes.get("strides", (1,) * axes))
        dilations = tuple(self._attributes.get("dilations", (1,) * axes))
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        if self._is_transposed:
            return self._transposed_sizes(x, w, strides, dilations, spans)
        pads = self._pads(x.shape[2:], strides, spans)
        short = tuple(
            (n + low + high - span) // s + 1
            for n, (low, high), span, s in zip(x.shape[2:], pads, spans, strides, strict=True)
        )
        return _Sizes(x.shape, short, kernel, strides, dilations, pads)

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
        self,
        x: Floats,
        w: Floats,
        strides: tuple[int, ...],
        dilations: tuple[int, ...],
        spans: Sequence[int],
    ) -> _Sizes:
        axes = x.ndim - 2
        if self._attributes.get("auto_pad", "NOTSET") != "NOTSET" or (
            "output_shape" in self._attributes
        ):
            raise ExecutionError("a transposed convolution of a stated size has no wide form")
        flat = tuple(self._attributes.get("pads", (0,) * 2 * axes))
        more = tuple(self._attributes.get("output_padding", (0,) * axes))
        pads = [*zip(flat[:axes], flat[axes:], strict=True)]
        long = tuple(
            s * (n - 1) + extra + span - low - high
            for n, s, extra, span, (low, high) in zip(
                x.shape[2:], strides, more, spans, pads, strict=True
            )
        )
        shape = (x.shape[0], w.shape[1] * self.groups, *long)
        return _Sizes(shape, x.shape[2:], w.shape[2:], strides, dilations, pads)


class _Sizes:
    """The sizes of a convolution: `shape` is that of the long side, `short` has the other's."""

    def __init__(
        self,
        shape: tuple[int, ...],
        short: tuple[int, ...],
        kernel: tuple[int, ...],
        strides: tuple[int, ...],
        dilations: tuple[int, ...],
        pads: Sequence[tuple[int, int]],
    ) -> None:
        self.shape, self.short, self.kernel = shape, short, kernel
        self.strides, self.dilations, self.pads = strides, dilations, pads

    @property
    def taps_count(self) -> int:
        """The number of taps of a kernel."""
        return prod(self.kernel)

    def padded(self) -> tuple[int, ...]:
        """Return the shape of the long side with its padding, and what the taps read beyond it."""
        sizes = [n + low + high for n, (low, high) in zip(self.shape[2:], self.pads, strict=True)]
        last = [
            d * (k - 1) + s * (m - 1) + 1
            for d, k, s, m in zip(
                self.dilations, self.kernel, self.strides, self.short, strict=True
            )
        ]
        return (*self.shape[:2], *map(max, sizes, last))

    def inside(self) -> tuple[slice, ...]:
        """Return the place of the long side in its padding."""
        pairs = zip(self.shape[2:], self.pads, strict=True)
        return (..., *(slice(low, low + n) for n, (low, _) in pairs))  # pyright: ignore

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
        """Yield the place of each tap in the kernel, and the elements that it reads."""
        for tap in product(*map(range, self.kernel)):
            starts = [d * k for d, k in zip(self.dilations, tap, strict=True)]
            ends = zip(starts, self.strides, self.short, strict=True)
            yield tap, (..., *(slice(at, at + s * (m - 1) + 1, s) for at, s, m in ends))


class _Taps:
    """The sums over the taps of a convolution from its long side to its short one, and back."""

    def __init__(self, sizes: _Sizes, groups: int) -> None:
        self.sizes, self.groups = sizes, groups

    def forward(self, x: Floats, w: Floats) -> Floats:
        """Return the short side from the long one."""
        long, count = self._padded(x), len(x)
        out = np.empty((count, w.shape[0], *self.sizes.short))
        rows, channels = self.sizes.short[0], w.shape[1] * prod(self.sizes.kernel)
        bytes_of_row = 8 * count * self.groups * channels * prod(self.sizes.short[1:])
        step = max(1, min(rows, BLOCK // max(bytes_of_row, 1)))
        matrix = w.reshape(self.groups, w.shape[0] // self.groups, channels)
        for start in range(0, rows, step):
            columns = self._columns(long, slice(start, min(start + step, rows)), w.shape[1])
            shape = (count, w.shape[0], -1, *self.sizes.short[1:])
            if channels == self.sizes.taps_count:  # one channel a group: no product of matrices
                part = np.einsum("gok,ngkp->ngop", matrix, columns)
            else:
                part = matrix @ columns
            out[:, :, start : start + step] = part.reshape(shape)
        return out

    def _columns(self, long: Floats, rows: slice, channels: int) -> Floats:
        """Return what the taps read for some rows, as [batch, group, channel and tap, place]."""
        count, short = len(long), (rows.stop - rows.start, *self.sizes.short[1:])
        columns = np.empty((count, self.groups, channels, self.sizes.taps_count, *short))
        stride = self.sizes.strides[0]
        for i, (_, view) in enumerate(self.sizes.taps()):
            first = view[1].start
            ends = first + stride * rows.start, first + stride * (rows.stop - 1) + 1
            part = long[(..., slice(*ends, stride), *view[2:])]
            columns[:, :, :, i] = part.reshape(count, self.groups, channels, *short)
        return columns.reshape(count, self.groups, channels * self.sizes.taps_count, -1)

    def backward(self, y: Floats, w: Floats) -> Floats:
        """Return the adjoint of the long side, or the result of a transposed convolution."""
        long, part = np.zeros(self.sizes.padded()), self._grouped(y)
        for tap, view in self.sizes.taps():
            target = long[view]
            target += (np.swapaxes(self._matrix(w, tap), -1, -2) @ part).reshape(target.shape)
        return np.ascontiguousarray(long[self.sizes.inside()])

    def of_kernels(self, x: Floats, y: Floats, shape: tuple[int, ...]) -> Floats:
        """Return the adjoint of the kernels, from the long side and the adjoint of the short."""
        long, result, part = self._padded(x), np.zeros(shape), self._grouped(y)
        for tap, view in self.sizes.taps():
            products = (part @ np.swapaxes(self._grouped(long[view]), -1, -2)).sum(axis=0)
            result[(..., *tap)] = products.reshape(shape[:2])
        return result

    def _padded(self, x: Floats) -> Floats:
        shape = self.sizes.padded()
        if shape == x.shape:
            return x
        long = np.zeros(shape)
        long[self.sizes.inside()] = x
        return long

    def _grouped(self, x: Floats) -> Floats:
        """Return an array as [batch, group, channel, place]."""
        return x.reshape(len(x), self.groups, x.shape[1] // self.groups, -1)

    def _matrix(self, w: Floats, tap: tuple[int, ...]) -> Floats:
        """Return the matrices of a tap, one for each group."""
        return w[(..., *tap)].reshape(self.groups, w.shape[0] // self.groups, w.shape[1])
