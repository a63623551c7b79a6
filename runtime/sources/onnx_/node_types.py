"""The types of nodes: those that ONNX infers, those that it does not, and operands that misfit.

ONNX has no promotion, and its checker refuses a Mul of float and int64. A model that mixes types is
read with a cast of the operand that is off, and a note says what to write.

Sources: Operators.md and Operators-ml.md of ONNX 1.23, ContribOperators.md of onnxruntime 1.32.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache, partial
from operator import add, sub
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from graphir.conversions import convert
from graphir.loss import loss
from graphir.ops.dims import Dim, Size
from graphir.ops.types import OpaqueType
from graphir.passes.analysis.explanations.entries import births_of
from graphir.public import DType, GraphError, GraphirError, Symbol, TensorType, ops
from graphir.runtime.sources.onnx_.model import DTYPES, domain_of, text_of
from graphir.runtime.sources.onnx_.static_values import StaticValues
from graphir.runtime.sources.onnx_.wire_format import (
    Message,
    NodeProto,
    Onnx,
    OpSchema,
    TensorProto,
    TypeProto,
)
from graphir.runtime.sources.op_rows import identifier

STRING = 8
"""ONNX's number of text."""

NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
"""ONNX's numbers of dtypes (TensorProto.DataType)."""


def type_text(type_: TypeProto) -> str:
    """Format an ONNX type."""
    return " ".join(str(type_).split())


class ModelTypes:
    """The types of a model's values, of ONNX and of graphir.

    `sizes` are the sizes of dims that the caller states. `opaque` has the ONNX types of values
    that are no arrays of numbers.
    """

    def __init__(self, onnx: Onnx) -> None:
        self._onnx = onnx
        self.sizes: Mapping[str, Any] = {}
        self.opaque: dict[Symbol, Any] = {}
        self._type_protos: dict[TensorType, Any] = {}  # which nothing changes
        self._dims: set[str] = set()

    def size(self, dim: Message, name: str) -> Size:
        """Return a dim; one that has neither size nor name, or the size -1, gets a name."""
        if dim.dim_value > 0 or (dim.HasField("dim_value") and not dim.dim_value):
            return dim.dim_value
        text, sizes = param_of(dim), self.sizes
        if not text:
            text = identifier(name)
            while text in self._dims:
                text += "_"
        if isinstance(sizes.get(text), int):
            return sizes[text]
        size = dim_of(text)
        self._dims.add(str(size))
        if isinstance(size, Dim) and {*size.names()} <= sizes.keys():
            return size.evaluate(cast("Any", sizes))
        return size

    def graphir_type(self, type_: TypeProto, name: str) -> TensorType:
        """Return the type of a value; opaque unless it is an array of numbers of a known rank."""
        tensor = type_.tensor_type
        dtype = DTYPES.get(tensor.elem_type)
        if not type_.HasField("tensor_type") or dtype is None or not tensor.HasField("shape"):
            return OpaqueType(type_text(type_))
        dims = enumerate(tensor.shape.dim)
        return TensorType(dtype, tuple(self.size(dim, f"{name}_{axis}") for axis, dim in dims))

    def onnx_type(self, symbol: Symbol) -> Any:
        """Return the ONNX type of a symbol."""
        if symbol in self.opaque:
            return self.opaque[symbol]
        if type(symbol.type) is not TensorType:
            fix = "state it in the model's value_info"
            raise GraphError("the type of an operand is unknown", got=str(symbol.type), fix=fix)
        proto = self._type_protos.get(symbol.type)
        if proto is None:
            shape = [size if isinstance(size, int) else str(size) for size in symbol.shape]
            proto = self._onnx.helper.make_tensor_type_proto(NUMBERS[symbol.dtype], shape)
            self._type_protos[symbol.type] = proto
        return proto


class ResultTypes(NamedTuple):
    """The types of a node's results, also as messages of ONNX by name; why ONNX refuses the node.

    A type is None where it is unknown.
    """

    types: list[TensorType | None]
    protos: Mapping[str, Any]
    problem: str = ""


class NodeTypes:
    """Type inference for the nodes of a graph; `declared` are the types that the model states."""

    def __init__(
        self,
        onnx: Onnx,
        types: ModelTypes,
        opsets: Mapping[str, int],
        static: StaticValues,
        declared: Mapping[str, Any],
    ) -> None:
        self._onnx, self._types, self._opsets = onnx, types, opsets
        self._static, self._declared = static, declared

    def infer(
        self,
        schema: OpSchema,
        node: NodeProto,
        operands: Mapping[str, Symbol | None],
        attrs: Mapping[str, Any],
        args: Sequence[Symbol | None],
    ) -> ResultTypes:
        """Return the types that ONNX infers for the results, and why it refuses the node, if so."""
        types: dict[str, Any] = {}
        data: dict[str, Any] = {}
        for name, symbol in operands.items():
            if symbol is None:
                continue
            types[name] = self._types.onnx_type(symbol)
            if type(symbol.type) is TensorType and symbol.dtype.is_integer and symbol.rank < 2:
                value = self._static.of(symbol)
                if value is not None and value.dtype != object and not symbol.dtype.narrow:
                    data[name] = self._onnx.numpy_helper.from_array(
                        np.asarray(value, order="C"), name
                    )
        opsets = [self._onnx.helper.make_opsetid(*pair) for pair in self._opsets.items()]
        try:
            inference = self._onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, None, opsets
            )
            problem = ""
        except Exception as error:  # such as InferenceError; the node is refused with it
            inference, problem = {}, str(error)
        return self.complete(node, attrs, inference, args)._replace(problem=problem)

    def complete(
        self,
        node: NodeProto,
        attrs: Mapping[str, Any],
        inference: dict[str, Any],
        args: Sequence[Symbol | None],
    ) -> ResultTypes:
        """Return the types of a node's results: as inferred, stated by tables, or declared."""
        results: list[TensorType | None] = []
        stated: list[ResultType] = []
        if domain_of(node) and args and args[0] is not None:
            stated = result_types(text_of(node.op_type), attrs, self._types.onnx_type(args[0]))
        for name, (element, sizes) in zip(node.output, stated, strict=False):
            if name not in inference or not inference[name].tensor_type.HasField("shape"):
                inference[name] = self._onnx.helper.make_tensor_type_proto(element, sizes)
        sizes = None
        if not domain_of(node) and not all(
            name in inference and _is_complete(inference[name]) for name in node.output
        ):
            sizes = self._known_sizes(text_of(node.op_type), attrs, args)
        for name in node.output:
            if sizes is not None and name in inference:
                self._complete(inference[name].tensor_type, sizes)
            type_ = self._completed(inference.get(name), self._declared.get(name))
            inference[name] = type_
            result = None if type_ is None else self._types.graphir_type(type_, text_of(name))
            results.append(result)
        return ResultTypes(results, inference)

    def _known_sizes(
        self, op: str, attrs: Mapping[str, Any], args: Sequence[Symbol | None]
    ) -> Sequence[Size | None] | None:
        """Return the sizes of the results of an op that its operands tell; None for a size."""

        def values_of(symbol: Symbol) -> list[Any] | None:
            value = self._static.of(symbol)
            return None if value is None else value.ravel().tolist()

        sizes = _SIZES[op](SizedNode(attrs, args, values_of)) if op in _SIZES else None
        return [None] * sizes if isinstance(sizes, int) else sizes

    def _complete(self, tensor: TensorProto, sizes: Sequence[Size | str | None]) -> None:
        """Set the sizes of an inferred type of an array that are unknown."""
        if not tensor.elem_type or (
            tensor.HasField("shape") and len(tensor.shape.dim) != len(sizes)
        ):
            return
        if not tensor.HasField("shape"):
            empty = self._onnx.helper.make_tensor_type_proto(tensor.elem_type, [None] * len(sizes))
            tensor.CopyFrom(empty.tensor_type)
        for dim, size in zip(tensor.shape.dim, sizes, strict=False):
            if size is not None and not dim.HasField("dim_value") and not dim.HasField("dim_param"):
                if isinstance(size, int):
                    dim.dim_value = size
                else:
                    dim.dim_param = str(size)

    def _completed(self, type_: TypeProto, declared: TypeProto) -> Any:
        """Return an inferred type, with the declared rank and names of sizes where it has none.

        Declared numbers are left out: a size that ONNX does not infer depends on values, and an
        exporter may have declared that of its example.
        """
        if type_ is None or declared is None or not type_.HasField("tensor_type"):
            return declared if type_ is None else type_
        tensor, other = type_.tensor_type, declared.tensor_type
        if not other.HasField("shape"):
            return type_
        self._complete(tensor, [param_of(dim) or None for dim in other.shape.dim])
        return type_


def param_of(dim: Message) -> str:
    """Return the name of a size; "" for texts that exporters write of an unknown size."""
    return _name_in(text_of(dim.dim_param))


@lru_cache(4096)
def _name_in(text: str) -> str:
    return "" if text == "None" or not re.search(r"\w", text) else text


def _is_complete(type_: TypeProto) -> bool:
    """Whether an inferred type is that of an array whose sizes all have a number or a name."""
    tensor = type_.tensor_type
    return tensor.HasField("shape") and all(x.WhichOneof("value") for x in tensor.shape.dim)


@lru_cache(4096)
def dim_of(text: str) -> Size:
    """Return the dim of a text of a model; a text that is no expression becomes a name."""
    try:
        return Dim.of(text)
    except GraphirError:
        return Dim.of(identifier(text))


def dim_names(text: str) -> set[str]:
    """Return the names in the dim of a text; none in "", an unknown size."""
    size = dim_of(text) if text else 0
    return {*size.names()} if isinstance(size, Dim) else set()


# -- sizes that ONNX does not infer


Values: TypeAlias = Callable[[Symbol], "list[Any] | None"]
"""Returns the elements of a symbol that depend on no input's elements, ints or dims; else None."""


class SizedNode(NamedTuple):
    """A node of ai.onnx, with what its operands tell of the sizes of its first result."""

    attrs: Mapping[str, Any]
    args: Sequence[Symbol | None]
    values_of: Values

    def array(self, place: int) -> Symbol | None:
        """Return an operand that is an array of numbers; else None."""
        x = self.args[place] if place < len(self.args) else None
        return x if x is not None and type(x.type) is TensorType else None

    def rank(self) -> int | None:
        """Return the rank of the first operand."""
        x = self.array(0)
        return None if x is None else x.rank

    def length(self, place: int) -> int | None:
        """Return the known length of a vector; None for other operands."""
        x = self.array(place)
        size = x.shape[0] if x is not None and x.rank == 1 else None
        return size if isinstance(size, int) else None

    def rank_by(self, combine: Callable[[int, int], int]) -> int | None:
        """Return the rank that follows from that of the first operand and the second's length."""
        rank, length = self.rank(), self.length(1)
        return None if rank is None or length is None else combine(rank, length)


KnownSizes: TypeAlias = "list[Size] | int | None"
"""The sizes of a result, or its rank alone."""


def _reduced(node: SizedNode) -> int | None:
    return node.rank() if node.attrs.get("keepdims", 1) else node.rank_by(sub)


def _windows(node: SizedNode, weight_place: int = 0, is_transposed: bool = False) -> KnownSizes:
    """Return the sizes of a convolution, or of a pool, which has no weight.

    The answer is None where they depend on values. Source: the formulas of output_shape in
    Operators.md.
    """
    attrs, x = node.attrs, node.array(0)
    if x is None or x.rank < 3 or attrs.get("ceil_mode"):
        return None
    weight = node.args[weight_place] if weight_place else None
    if weight_place and (weight is None or weight.rank != x.rank):
        return None
    kernel = attrs.get("kernel_shape") or (weight.shape[2:] if weight is not None else ())
    count, auto_pad = x.rank - 2, attrs.get("auto_pad") or "NOTSET"
    is_stated = attrs.get("output_shape") or (is_transposed and auto_pad != "NOTSET")
    if len(kernel) != count or is_stated:
        return None
    strides = attrs.get("strides") or [1] * count
    dilations = attrs.get("dilations") or [1] * count
    pads = attrs.get("pads") or [0] * 2 * count
    more = attrs.get("output_padding") or [0] * count
    channels: Any = x.shape[1] if weight is None else weight.shape[0]
    if is_transposed and weight is not None:
        channels = weight.shape[1] * attrs.get("group", 1)
    sizes: list[Size] = [x.shape[0], channels]
    for i, (size, k) in enumerate(zip(x.shape[2:], kernel, strict=True)):
        n, step, width = cast("Any", size), strides[i], (k - 1) * dilations[i] + 1
        padding = 0 if auto_pad == "VALID" else pads[i] + pads[count + i]
        if is_transposed:
            sizes.append(step * (n - 1) + more[i] + width - padding)
        elif auto_pad in ("NOTSET", "VALID"):
            sizes.append(_floor(n + padding - width, step) + 1)
        else:
            sizes.append(_floor(n + step - 1, step))
    return sizes


def _floor(size: Size, step: int) -> Any:
    return size if step == 1 else size // step


def _resized(node: SizedNode) -> KnownSizes:
    """Return the sizes that the last operand of a Resize or Upsample states, or its scales."""
    x, last = node.array(0), node.args[-1] if len(node.args) > 1 else None
    if x is None:
        return None
    values = None if last is None else node.values_of(last)
    if last is None or values is None or len(values) != x.rank or node.attrs.get("axes"):
        return x.rank
    if last.dtype.is_integer:
        is_stretch = node.attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch"
        return values if is_stretch else x.rank
    sizes: list[Size] = []
    for size, scale in zip(x.shape, values, strict=True):
        n: Any = size
        if scale == int(scale):
            sizes.append(n * int(scale))
        elif (1 / scale).is_integer() and int(1 / scale).bit_count() == 1:
            sizes.append(n // int(1 / scale))
        else:
            return x.rank
    return sizes


_SIZES: Mapping[str, Callable[[SizedNode], KnownSizes]] = {
    "STFT": lambda node: 4,
    "ConstantOfShape": lambda node: node.length(0),
    "Reshape": lambda node: node.length(1),
    "Expand": lambda node: node.rank_by(max),
    "Unsqueeze": lambda node: node.rank_by(add),
    "Squeeze": lambda node: node.rank_by(lambda rank, count: max(rank - count, 0)),
    **dict.fromkeys(("Slice", "Tile", "Pad", "Trilu", "CenterCropPad"), SizedNode.rank),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceMean"), _reduced),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare"), _reduced),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), _reduced),
    **dict.fromkeys(("Resize", "Upsample"), _resized),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _windows),
    **dict.fromkeys(("Conv", "ConvInteger"), partial(_windows, weight_place=1)),
    "ConvTranspose": partial(_windows, weight_place=1, is_transposed=True),
    "QLinearConv": partial(_windows, weight_place=3),
}
"""By op of ai.onnx, the sizes of the first result that operands tell, or its rank alone.

The elements of a shape, of axes or of pads may be unknown. ONNX infers the rank of other ops.
"""


# -- types of ops of other domains


ResultType: TypeAlias = tuple[int, list[Any]]
"""ONNX's number of a dtype, and sizes: None is an unknown one."""

_FLOAT, _INT64 = 1, 7  # TensorProto.DataType


def _classified(attrs: Mapping[str, Any], sizes: list[Any]) -> list[ResultType]:
    is_int = any(attrs.get(name) for name in ("classlabels_int64s", "classlabels_ints"))
    return [(_INT64 if is_int else STRING, _rows(sizes)), (_FLOAT, [*_rows(sizes), None])]


def _regressed(attrs: Mapping[str, Any], sizes: list[Any]) -> list[ResultType]:
    return [(_FLOAT, [*_rows(sizes), attrs.get("n_targets", 1)])]


def _rows(sizes: list[Any]) -> list[Any]:
    """Return the number of samples of an operand, as a shape."""
    return [sizes[0] if len(sizes) > 1 else 1]


_RESULT_TYPES: Mapping[str, Callable[[Mapping[str, Any], list[Any]], list[ResultType]]] = {
    "Tokenizer": lambda attrs, sizes: [(STRING, [*sizes, None])],
    **dict.fromkeys(("SVMRegressor", "TreeEnsembleRegressor"), _regressed),
    **dict.fromkeys(("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"), _classified),
}
"""By op, the types of its results for its attributes and the sizes of its first operand."""


def result_types(op: str, attrs: Mapping[str, Any], operand: TypeProto) -> list[ResultType]:
    """Return the types of an op's results that a table states, for the type of its first operand.

    The op may be onnxruntime's own.
    """
    sizes: list[Any] = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
        for dim in operand.tensor_type.shape.dim
    ]
    return _RESULT_TYPES[op](attrs, sizes) if op in _RESULT_TYPES else []


# -- operands that must have one type, in models that mix types


class NodeOperand(NamedTuple):
    """An input of a node: its place and name, and the parameter of the op, with its variable."""

    place: int
    name: str
    symbol: Symbol
    parameter: str
    variable: str

    @property
    def is_constant(self) -> bool:
        """Whether the operand is an initializer or the result of a Constant node."""
        return self.symbol.op is ops.constant


class Misfit(NamedTuple):
    """An operand that is off, the dtype that it needs, and the sentence that says so."""

    operand: NodeOperand
    dtype: DType
    note: str


def misfits(
    onnx: Onnx,
    schema: OpSchema,
    names: Sequence[str],
    args: Sequence[Symbol | None],
    declared: Declared,
) -> list[Misfit]:
    """Return the operands of a node whose dtypes ONNX refuses; GraphError if no cast is sure."""
    formals, fits = _parameters(onnx, schema)
    groups: dict[str, list[NodeOperand]] = {}
    for place, symbol in enumerate(args):
        name, variable, is_homogeneous = formals[min(place, len(formals) - 1)]
        if symbol is not None and type(symbol.type) is TensorType:
            operand = NodeOperand(place, names[place], symbol, name, variable)
            groups.setdefault(variable if is_homogeneous else str(place), []).append(operand)
    results: list[Misfit] = []
    for group in groups.values():
        variable = group[0].variable
        fit = fits[variable]
        dtypes = {operand.symbol.dtype for operand in group}
        if len(dtypes) == 1 and dtypes <= fit:
            continue
        is_result = any(result.type_str == variable for result in schema.outputs)
        target = _target(group, fit, declared if is_result else Declared(None, False))
        operands = " and ".join(
            f"{type_name(onnx, x.symbol.dtype)} ({x.name}{born_at(x.symbol)})" for x in group
        )
        demand = "has one type" if len(dtypes) > 1 else f"takes no {type_name(onnx, *dtypes)}"
        if target is None:
            raise GraphError(
                f"{schema.name} {demand}", got=operands, fix=_advice(onnx, group, dtypes, fit)
            )
        for operand in group:
            if operand.symbol.dtype is not target:
                to = type_name(onnx, target)
                fix = f"insert Cast(to={to}) of {operand.name!r} before it"
                if operand.is_constant:
                    fix = f"give the constant {operand.name!r} the type {to}"
                note = f"{schema.name} {demand}, and ONNX promotes nothing; got {operands}; {fix}"
                results.append(Misfit(operand, target, note))
    return results


def _advice(onnx: Onnx, group: Sequence[NodeOperand], dtypes: Set[DType], fit: Set[DType]) -> str:
    """Return the Cast of operands to the smallest type that holds all their values, if any does."""
    ranked = sorted(fit, key=lambda x: (x.is_inexact, x.bits, x.is_integer and not x.min < 0))
    holding = (x for x in ranked if all(loss(y, x).exact for y in dtypes))
    dtype = next(holding, None)
    if dtype is None:
        return "insert a Cast"
    names = " and ".join(repr(x.name) for x in group if x.symbol.dtype is not dtype)
    return f"insert Cast(to={type_name(onnx, dtype)}) of {names} before it"


def born_at(symbol: Symbol) -> str:
    """Return the node, initializer or input where a value's dtype is born, as `, since Cast_18`."""
    birth = births_of(symbol.graph).of(symbol)
    names = zip(symbol.graph.inputs, symbol.graph.input_names, strict=True)
    name = next((name for x, name in names if x is birth), birth.location.file)
    is_other = birth is not symbol or bool(symbol.args)
    return f", since {name}" if is_other and name and not birth.location.line else ""


Parameters: TypeAlias = "tuple[list[tuple[str, str, bool]], dict[str, frozenset[DType]]]"

_PARAMETERS: dict[tuple[str, str, int], Parameters] = {}
"""What `_parameters` has answered, by domain, op and version."""


def _parameters(onnx: Onnx, schema: OpSchema) -> Parameters:
    """Return the parameters of an op with their type variables, and the dtypes of the variables."""
    key = schema.domain, schema.name, schema.since_version
    if key not in _PARAMETERS:
        formals = [(each.name, each.type_str, each.is_homogeneous) for each in schema.inputs]
        texts = {
            each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints
        }
        names = {f"tensor({type_name(onnx, dtype)})": dtype for dtype in DTYPES.values()}
        fits = {
            variable: frozenset(
                names[text] for text in texts.get(variable, {variable}) & names.keys()
            )
            for _, variable, _ in formals
        }
        _PARAMETERS[key] = formals, fits
    return _PARAMETERS[key]


class Declared(NamedTuple):
    """The dtype that the model states for the first result, and whether it is one of the graph."""

    dtype: DType | None
    is_output: bool


def _target(
    group: Sequence[NodeOperand], fit: frozenset[DType], declared: Declared
) -> DType | None:
    """Return the dtype in which operands meet, or None.

    It is the declared dtype of an output of the graph. Else constants give way to computed values,
    if no value is lost. Else it is the declared dtype of the result, that of most operands, or the
    widest.
    """
    dtypes = {operand.symbol.dtype for operand in group}
    if len(dtypes) == 1:
        return (
            declared.dtype if declared.dtype in fit else next(iter(fit)) if len(fit) == 1 else None
        )
    candidates = dtypes & fit
    if declared.is_output and declared.dtype in candidates:
        return declared.dtype
    others = [operand for operand in group if not operand.is_constant]
    main = {operand.symbol.dtype for operand in others} & fit
    constants = [operand.symbol for operand in group if operand.is_constant]
    if len(main) == 1 and all(_survives(constant, *main) for constant in constants):
        return main.pop()
    if declared.dtype in candidates:
        return declared.dtype
    counts = Counter(operand.symbol.dtype for operand in group if operand.symbol.dtype in fit)
    ranked = sorted(counts, key=lambda dtype: (counts[dtype], dtype.is_inexact, dtype.bits))
    return ranked[-1] if ranked else None


def _survives(constant: Symbol, dtype: DType) -> bool:
    """Whether a constant keeps its values in a dtype, except that floats may round."""
    source: DType = constant.dtype
    array = constant.attrs["value"]
    if source.is_inexact and dtype.is_inexact:
        return dtype.is_complex or not source.is_complex
    back = convert(convert(array, source, dtype), dtype, source)
    return bool(np.array_equal(back, array))


def type_name(onnx: Onnx, dtype: DType) -> str:
    """Return ONNX's name of a dtype, `float` for float32; graphir's if the version lacks it."""
    number = next(number for number, each in DTYPES.items() if each is dtype)
    numbers: dict[str, int] = dict(onnx.TensorProto.DataType.items())
    return next((name.lower() for name, each in numbers.items() if each == number), str(dtype))
