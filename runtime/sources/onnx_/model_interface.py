"""The inputs and outputs of a model: their types, and the sizes that a caller states."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from graphir import Graph, GraphError, Location, Symbol, TensorType, ops
from graphir.ops.dims import Dim
from graphir.runtime.sources.onnx_.messages import GraphProto, Message, TypeProto
from graphir.runtime.sources.onnx_.model import DTYPES, require_distinct, require_size, text_of
from graphir.runtime.sources.onnx_.node_types import (
    STRING,
    ModelTypes,
    dim_names,
    dim_of,
    param_of,
    type_text,
)
from graphir.runtime.sources.op_rows import identifier

if TYPE_CHECKING:
    from graphir.runtime.sources.onnx_.source import OnnxImporter


def add_inputs(importer: OnnxImporter, proto: GraphProto, stated: Mapping[str, Any]) -> None:
    """Add the inputs of the model's graph, and its initializers; `stated` are sizes and values."""
    importer.add_tensors(proto)
    importer.declare(proto)
    require_distinct([text_of(info.name) for info in proto.input], "inputs")
    sizes = importer.types.sizes = _stated_sizes(proto, stated)
    for info in proto.input:
        name = text_of(info.name)
        if name not in importer.tensors:
            type_ = _input_type(importer.types, info.type, name)
            if hasattr(sizes.get(name), "dtype") and not isinstance(sizes[name], TensorType):
                importer.values[name] = _input_value(importer.graph, name, type_, sizes[name])
                continue
            text = identifier(name)
            while text in importer.graph.input_names:
                text += "_"
            with importer.graph.at(Location.at(name, 0)):
                importer.values[name] = importer.graph.input(type_, name=text)


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


def add_outputs(importer: OnnxImporter, infos: Sequence[Message]) -> None:
    """Add the outputs of the model's graph, but those of text, which a note names."""
    symbols = [symbol for info in infos if (symbol := _output_symbol(importer, info)) is not None]
    if not symbols:
        raise GraphError("the model has no output of numbers")
    importer.graph.output(*symbols)


def _output_symbol(importer: OnnxImporter, info: Message) -> Symbol | None:
    """Return the symbol of an output, None for text; GraphError where it is no array."""
    name = text_of(info.name)
    symbol = importer.symbol(name)
    if type(symbol.type) is TensorType:
        if info.type.HasField("sequence_type") or info.type.HasField("map_type"):
            importer.notes.append(f"output {name!r} is the array of the values, without their keys")
        if symbol.op is ops.input or name in importer.tensors:
            importer.require_declared(name, symbol, "input or initializer")
        return symbol
    type_ = importer.types.opaque.get(symbol, info.type)
    if STRING in (type_.tensor_type.elem_type, info.type.tensor_type.elem_type):
        importer.notes.append(f"output {name!r} is text, which the graph leaves out")
        return None
    if type_.HasField("tensor_type"):
        raise GraphError(f"output {name!r} has no known rank", fix="declare its shape")
    raise GraphError(f"output {name!r} is no array", got=type_text(type_))
