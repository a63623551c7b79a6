"""The inputs and outputs of a model: their types, the sizes that a caller states, and text.

Text comes and goes as the numbers of its characters.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.ops.control import Callee
from graphir.ops.dims import Dim
from graphir.ops.types import OpaqueType, TupleType
from graphir.public import (
    DType,
    ExecutionError,
    Graph,
    GraphError,
    Location,
    Symbol,
    TensorType,
    ops,
)
from graphir.runtime.sources.onnx_.model import DTYPES, require_distinct, require_size, text_of
from graphir.runtime.sources.onnx_.node_types import (
    NUMBERS,
    STRING,
    ModelTypes,
    dim_names,
    dim_of,
    param_of,
    type_text,
)
from graphir.runtime.sources.onnx_.wire_format import GraphProto, Message, Onnx, TypeProto
from graphir.runtime.sources.op_rows import identifier

if TYPE_CHECKING:
    from graphir.runtime.sources.onnx_.source import OnnxImporter


def add_inputs(importer: OnnxImporter, proto: GraphProto, stated: Mapping[str, Any]) -> None:
    """Add the inputs of the model's graph, and its initializers; `stated` are sizes and values."""
    importer.add_tensors(proto)
    importer.declare(proto)
    importer.output_names = {text_of(x.name) for x in proto.output}
    require_distinct([text_of(info.name) for info in proto.input], "inputs")
    sizes = importer.types.sizes = _stated_sizes(proto, stated)
    for info in proto.input:
        name = text_of(info.name)
        if name not in importer.tensors:
            is_text = info.type.tensor_type.elem_type == STRING
            full_type = _points_type(importer.onnx, info.type) if is_text else info.type
            type_ = _input_type(importer.types, full_type, name)
            if hasattr(sizes.get(name), "dtype") and not isinstance(sizes[name], TensorType):
                importer.values[name] = _input_value(importer.graph, name, type_, sizes[name])
                continue
            text = identifier(name)
            while text in importer.graph.input_names:
                text += "_"
            with importer.graph.at(Location.at(name, 0)):
                symbol = importer.graph.input(type_, name=text)
                importer.values[name] = _text(importer, symbol, info.type) if is_text else symbol


def _stated_sizes(proto: GraphProto, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the caller states, by the model's names, with the sizes in stated shapes.

    Raises GraphError for a name that the model does not have, and for a shape or a dtype that
    contradicts the model's.
    """
    infos = {text_of(info.name): info.type for info in proto.input}
    names = {identifier(name): name for name in infos} | {name: name for name in infos}
    sizes = {names.get(name, name): value for name, value in stated.items()}
    dims = [dim for type_ in infos.values() for dim in type_.tensor_type.shape.dim]
    texts = {param_of(dim) for dim in dims} - {""}
    for text in texts & sizes.keys():  # of a model that names a size `batch size`
        sizes.setdefault(str(dim_of(text)), sizes[text])
    symbols = {name for text in texts for name in dim_names(text)} | texts
    symbols |= {str(dim_of(text)) for text in texts}
    if strange := sorted(sizes.keys() - infos.keys() - symbols):
        has = ", ".join([*sorted(symbols), *infos])
        raise GraphError(f"the model has no size or input {strange[0]!r}; it has {has}")
    for name, value in [*sizes.items()]:
        shape = getattr(value, "shape", value)
        if name not in infos or not isinstance(shape, (tuple, list)):
            continue
        tensor = infos[name].tensor_type
        dtype, dims = DTYPES.get(tensor.elem_type), tensor.shape.dim
        fits = not isinstance(value, TensorType) or value.dtype is dtype
        fits &= len(shape) == len(dims) or not tensor.HasField("shape")
        for dim, size in zip(dims, shape, strict=False):
            text = param_of(dim)
            if text in symbols and isinstance(size, int):
                fits &= sizes.setdefault(text, size) == size
            elif not text and (dim.dim_value > 0 or dim.HasField("dim_value")):
                fits &= size == dim.dim_value or dim.dim_value < 0
        if not fits:
            whole = ", ".join(text_of(x.dim_param) or str(x.dim_value or "?") for x in dims)
            raise GraphError(f"input {name!r} is {dtype}[{whole}]", got=str(value))
    return sizes


def _input_type(types: ModelTypes, type_: TypeProto, name: str) -> TensorType:
    tensor = type_.tensor_type
    dtype = DTYPES.get(tensor.elem_type)
    if not type_.HasField("tensor_type") or dtype is None:
        raise GraphError(f"input {name!r} is no array of numbers", got=type_text(type_), op="input")
    shape = getattr(types.sizes.get(name), "shape", types.sizes.get(name))
    if not isinstance(shape, (tuple, list)):
        if not tensor.HasField("shape"):
            text = identifier(name)
            raise GraphError(
                f"input {name!r} has no rank",
                fix=f"pass its shape: from_onnx(model, {text}=(2, 3)), "
                f'in the shell --input "{text}={dtype}[2, 3]"',
            )
        dims = enumerate(tensor.shape.dim)
        shape = [types.size(dim, f"{name}_{axis}") for axis, dim in dims]
    require_size(shape)
    return TensorType(dtype, tuple(cast("Any", shape)))


def _input_value(graph: Graph, name: str, type_: TensorType, value: ArrayLike) -> Symbol:
    """Return the constant of the value that the caller states for an input."""
    array = np.asarray(value)
    fits = [a == b or isinstance(b, Dim) for a, b in zip(array.shape, type_.shape, strict=False)]
    if array.dtype != type_.dtype.storage or array.ndim != type_.rank or not all(fits):
        got = f"{array.dtype}{list(array.shape)}"
        raise GraphError(f"input {name!r} is {type_}", got=got)
    return graph.constant_of((type_.dtype, array))


def output_symbol(importer: OnnxImporter, info: Message) -> Symbol:
    """Return the symbol of an output of the model; GraphError where it is no array."""
    name = text_of(info.name)
    symbol = importer.symbol(name)
    if type(symbol.type) is TensorType:
        if info.type.HasField("sequence_type") or info.type.HasField("map_type"):
            importer.notes.append(f"output {name!r} is the array of the values, without their keys")
        if symbol.op is ops.input or name in importer.tensors:
            importer.require_declared(name, symbol, "input or initializer")
        return symbol
    type_ = importer.types.opaque.get(symbol, info.type)
    type_ = type_ if type_.tensor_type.HasField("shape") else info.type
    if not type_.tensor_type.HasField("shape") and type_.HasField("tensor_type"):
        raise GraphError(f"output {name!r} has no known rank", fix="declare its shape")
    if type_.tensor_type.elem_type != STRING:
        raise GraphError(f"output {name!r} is no array", got=type_text(type_))
    types = [importer.types.graphir_type(_points_type(importer.onnx, type_), name)]
    return _text_step(importer, "onnx.characters", points_of_text, symbol, types)


def _points_type(onnx: Onnx, type_: TypeProto) -> Any:
    """Return the type of text as the numbers of its characters, on an axis more."""
    new = onnx.TypeProto.FromString(type_.SerializeToString())
    new.tensor_type.elem_type = NUMBERS[DType.uint32]
    new.tensor_type.shape.dim.add()
    return new


def _text(importer: OnnxImporter, symbol: Symbol, type_: TypeProto) -> Symbol:
    """Return text of the numbers of its characters."""
    types = [OpaqueType(type_text(type_))]
    result = _text_step(importer, "onnx.text", text_of_points, symbol, types)
    importer.types.opaque[result] = type_
    return result


def _text_step(
    importer: OnnxImporter,
    name: str,
    function: Callable[..., Any],
    operand: Symbol,
    types: Sequence[TensorType],
) -> Symbol:
    attrs = {"callee": Callee(name, function), "types": TupleType(types)}
    return importer.control(ops.control.call, (operand,), attrs)[0]


def text_of_points(points: NDArray[Any]) -> tuple[Any, ...]:
    """Return the text of the numbers of its characters, which are the last axis."""
    size = points.shape[-1]
    if not points.size:
        return (np.full(points.shape[:-1], "", object),)
    if points.max() > sys.maxunicode:
        raise ExecutionError("the number of a character is too large", got=str(points.max()))
    return (np.ascontiguousarray(points).view(f"U{size}")[..., 0].astype(object),)


def points_of_text(text: NDArray[Any]) -> tuple[Any, ...]:
    """Return the numbers of the characters of text, on a last axis."""
    return (np.asarray(text, "U")[..., None].view(np.uint32),)
