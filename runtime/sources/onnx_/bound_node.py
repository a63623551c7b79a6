"""Nodes that no op stands for: the op `call`, which onnxruntime or onnx itself computes."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.display import count_text
from graphir.ops.attributes import is_frozen
from graphir.public import DType, ExecutionError, GraphError
from graphir.runtime.audit.library_calls import LibraryCall
from graphir.runtime.sources.onnx_.model import OnnxModel, domain_of, graphs_of, text_of
from graphir.runtime.sources.onnx_.nodes import result_names
from graphir.runtime.sources.onnx_.wide_nodes import (
    RANDOM,
    WideNode,
    convolution_of,
    integer_product,
    quantized_lstm,
    takes_floats,
)
from graphir.runtime.sources.onnx_.wire_format import LARGE, NodeProto, OpSchema


class BoundNode(LibraryCall):
    """A node with its attributes, as a function of arrays: one for each of `names`.

    `types` are the types of the names, messages of ONNX, and `constants` the arrays of names that
    are constants of the graph. onnxruntime computes the node, or onnx's reference evaluator where
    onnxruntime deviates, is missing, or has no kernel for the types. In wide arithmetic, the same
    engines compute the node in float64, and this project computes convolutions.
    """

    def __init__(
        self,
        model: OnnxModel,
        node: NodeProto,
        types: Mapping[str, Any],
        opsets: Mapping[str, int],
        constants: Mapping[str, Any],
    ) -> None:
        self._model, self._node, self._types, self._opsets = model, node, types, opsets
        self._constants = constants
        self._equal = dict[str, Any]()  # the frozen arrays found equal to constants
        self._runs: dict[Any, Any] = {}  # by engine, and whether constants are inside
        self._results = [*result_names(node)]
        engines = _onnxruntime, _reference
        self._engines = engines[::-1] if _is_by_reference(node) else engines
        self._places = [(i, name) for i, name in enumerate(types) if name in constants]
        self._unsigned = _signed_factor(node, types)
        order = {name: place for place, name in enumerate(types)}
        self._feeds = [  # with constants inside the model, and outside
            [(name, order[own], is_unsigned) for name, own, is_unsigned in self._forms(names)]
            for names in ({*types} - {*constants}, {*types})
        ]

    def __call__(self, *arrays: NDArray[Any]) -> tuple[Any, ...]:
        """Return the results of the node."""
        inside = True
        for place, name in self._places:
            inside = inside and self._is_own(arrays[place], name)
        feeds = dict[str, Any]()
        for name, place, is_unsigned in self._feeds[not inside]:
            feeds[name] = _as_unsigned(arrays[place]) if is_unsigned else arrays[place]
        problems: list[str] = []
        for engine in self._engines:
            try:
                run = self._runs.get((engine, inside))
                if run is None:
                    run = self._runs[engine, inside] = self._function_of(engine, inside)
                return tuple(run(self._results, feeds))
            except Exception as error:  # each engine has exceptions of its own
                problems.append(f"{type(error).__name__}: {error}".partition("\n")[0][:300])
        raise ExecutionError(f"onnx.{self._node.op_type}: {'; '.join(problems)}")

    def _is_own(self, array: NDArray[Any], name: str) -> bool:
        """Whether an operand has the bytes of the constant that it was; passes merge equal ones."""
        own = self._constants[name]
        if array is own or array is self._equal.get(name):
            return True
        if array.dtype != own.dtype or array.shape != own.shape:
            return False
        ours, theirs = (x.__array_interface__ for x in (array, own))
        if ours["data"] == theirs["data"] and ours["strides"] == theirs["strides"]:
            return True
        if array.nbytes > _COMPARED and not is_frozen(array):
            return False
        is_equal = array.tobytes() == own.tobytes()
        if is_equal and is_frozen(array):
            self._equal[name] = array
        return is_equal

    def _function_of(self, engine: Callable[..., Any], inside: bool) -> Callable[..., Any]:
        """Return the function of an engine; one that raises, where it does not take the node."""
        try:
            return engine(self._node, self._whole(inf if inside else 0))
        except Exception as error:  # each engine has exceptions of its own
            return partial(_raise, error)

    @property
    def engine(self) -> str:
        """The engine that computes the node: onnxruntime, or the reference evaluator."""
        for engine in self._engines:
            run = self._runs.get((engine, True)) or self._function_of(engine, True)
            if not isinstance(run, partial):
                return "onnxruntime" if engine is _onnxruntime else "reference evaluator"
        return "no engine"

    def result_types(self) -> dict[str, Any]:
        """Return the types of the results by onnxruntime, messages of ONNX; GraphError without any.

        onnxruntime does not tell an unknown rank from no axes: no shape is stated then.
        """
        onnx, types = self._model.onnx, dict[str, Any]()
        elements = dict(onnx.TensorProto.DataType.items())
        try:
            session = _session(self._whole(LARGE))
        except Exception:  # onnxruntime has exceptions of its own
            try:  # with large constants inside, which kernels of quantized weights ask for
                session = _session(self._whole())
            except ImportError:
                raise GraphError("onnxruntime is missing", fix="install onnxruntime") from None
            except Exception as error:
                raise GraphError(str(error).partition("\n")[0][:300]) from None
        for result in session.get_outputs():
            name = result.type.removeprefix("tensor(").removesuffix(")").upper()
            if name in elements:
                shape = result.shape or None
                types[result.name] = onnx.helper.make_tensor_type_proto(elements[name], shape)
        return types

    @property
    def inside(self) -> str:
        """What the node may cast inside: nodes of its graphs that convert, or of other domains."""
        nodes = [*_nodes_inside(self._node)]
        count = sum(_is_converting(node) for node in nodes)
        return f"holds {count_text(count, 'node')} that may cast" if count else ""

    # -- in wide arithmetic

    @property
    def data_of(self) -> tuple[int, ...] | None:
        """The positions of the parameters of a draw; None of other nodes."""
        return None if domain_of(self._node) else RANDOM.get(self._node.op_type)

    @property
    def draws(self) -> bool:
        """Whether the node draws."""
        return self.data_of is not None

    @property
    def precision(self) -> int | None:
        """The bits of the bytes to which a node rounds inside; None of other nodes."""
        return 8 if self._node.op_type == "DynamicQuantizeLSTM" else None

    @property
    def keeps_order(self) -> bool:
        """Whether the results are an order and its places, or those of maxima."""
        return self._node.op_type in ("MaxPool", "TopK")

    def is_number(self, place: int) -> bool:
        """Whether a node takes the operand for numbers: where the op takes float64 too."""
        name = [*self._types][place]
        return takes_floats(self._model.onnx, self._node, name, self._opsets)

    def widened(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the results of the node in float64."""
        convolution = convolution_of(self._node)
        if convolution is not None:
            return [convolution(*operands)]
        product = integer_product(self._node, operands)
        if product is not None:
            return [product]
        cell = quantized_lstm(self._node, dict(zip(self._types, operands, strict=True)))
        if cell is not None:
            return cell
        if self._node.op_type == "Dropout" and len(operands) > 2 and operands[2].any():
            raise ExecutionError("is random")
        return self._in_float64(operands, None)

    def results_in(self, operands: Sequence[Any], dtype: DType) -> Sequence[Any]:
        """Return the results of the node in float64; its graphs round their floats to a dtype."""
        if any(graphs_of(self._node)):
            return self._in_float64(operands, dtype)
        return self.widened(operands)

    def _in_float64(self, operands: Sequence[Any], dtype: DType | None) -> Sequence[Any]:
        feeds = dict(zip(self._types, self._wide.operands(operands), strict=True))
        problems: list[str] = []
        both = (_evaluator, _onnxruntime) if _is_by_reference(self._node) else _WIDE_ENGINES
        for engine in both:
            try:
                run = self._runs.get((engine, "wide", dtype))
                if run is None:
                    run = engine(self._node, self._wide.rounding(dtype))
                    self._runs[engine, "wide", dtype] = run
                return run(self._results, feeds)
            except Exception as error:  # each engine has exceptions of its own
                problems.append(f"{type(error).__name__}: {error}".partition("\n")[0][:120])
        raise ExecutionError(f"has no kernel for float64 ({'; '.join(problems)})")

    def adjoints(self, operands: Sequence[Any], place: int, adjoint: Any) -> Sequence[Any] | None:
        """Return the adjoints of the operands of a convolution; None of other nodes."""
        convolution = convolution_of(self._node)
        if convolution is None:
            return None
        x, w, *b = operands
        return convolution.adjoints(x, w, b[0] if b else None, adjoint)

    @cached_property
    def _wide(self) -> WideNode:
        if any(graphs_of(self._node)) and self._model.proto.functions:
            raise ExecutionError("calls functions of the model, which have no wide form")
        model = self._whole(0, is_exact=False)
        return WideNode(self._model.onnx, self._node, self._types, model)

    def renamed(self, inputs: Sequence[str], outputs: Sequence[str], opset: int) -> Any:
        """Return the node with other names of its operands and results, for a model of an opset.

        Raises GraphError for a node with graphs, and for one that is no one node in that opset.
        """
        node = self._model.whole(self._node)
        if not node.domain and self._opsets[""] != opset:
            converter = import_module("onnx.version_converter")
            try:
                model = converter.convert_version(self._whole(0, is_exact=False), opset)
            except Exception as error:  # it has exceptions of its own
                raise GraphError(f"{node.op_type}: {error}".partition("\n")[0]) from None
            if len(model.graph.node) != 1 or model.graph.initializer:
                raise GraphError(f"{node.op_type} is several nodes in opset {opset}")
            node = model.graph.node[0]
        if any(graphs_of(node)):
            raise GraphError(f"{node.op_type} has graphs of its own")
        names = dict(zip(self._types, inputs, strict=True))
        results = iter(outputs)
        node.input[:] = [name and names[name] for name in node.input]
        node.output[:] = [name and next(results) for name in node.output]
        node.name = next(name for name in node.output if name)
        return node

    @property
    def domain(self) -> tuple[str, int]:
        """The operator set of the node, and its version."""
        name = domain_of(self._node)
        return name, self._opsets[name]

    def _forms(self, names: Container[str], is_exact: bool = True) -> list[tuple[str, str, bool]]:
        """Return the operands of some names in the form that an engine takes.

        A form is the name in the model of the node, the own name, and whether signed bytes become
        unsigned ones of `_signed_factor`, which they do if products have to be exact.
        """
        new = self._unsigned if is_exact else {}
        places = [*self._node.input]
        same = {name for place, name in enumerate(places) if place not in new}
        forms = [(name, name, False) for name in self._types if name in same or not new]
        forms += [(name, places[place], True) for place, name in new.items() if name != _ZERO]
        return [form for form in forms if form[1] in names]

    def _whole(self, most: float = inf, is_exact: bool = True) -> Any:
        """Return a model of the node alone, with constants of fewer bytes than `most` inside it."""
        onnx, helper = self._model.onnx, self._model.onnx.helper
        constants = {name for name, each in self._constants.items() if each.nbytes < most}
        inputs, tensors = list[Any](), list[Any]()
        for name, own, is_unsigned in self._forms({*self._types}, is_exact):
            if own in constants:
                array = self._constants[own]
                array = _as_unsigned(array) if is_unsigned else array
                tensors.append(onnx.numpy_helper.from_array(array, name))
                continue
            type_ = self._types[own]
            if is_unsigned:
                type_ = onnx.TypeProto.FromString(type_.SerializeToString())
                type_.tensor_type.elem_type = onnx.TensorProto.UINT8
            inputs.append(helper.make_value_info(name, type_))
        node = self._model.whole(self._node)
        for place, name in self._unsigned.items() if is_exact else ():
            node.input.extend([""] * (place + 1 - len(node.input)))
            node.input[place] = name
            if name == _ZERO:
                tensors.append(onnx.numpy_helper.from_array(np.array(128, np.uint8), name))
        outputs = [helper.make_empty_tensor_value_info(name) for name in self._node.output if name]
        graph = helper.make_graph([node], "call", inputs, outputs, tensors)
        opsets = [helper.make_opsetid(*pair) for pair in self._opsets.items()]
        functions = self._model.proto.functions if any(graphs_of(self._node)) else ()
        return helper.make_model(
            graph,
            opset_imports=opsets,
            functions=[*map(self._model.whole, functions)],
            ir_version=max(self._model.proto.ir_version, 10),
        )


def _nodes_inside(node: NodeProto) -> Iterator[Any]:
    """Yield the nodes of the graphs of a node, and those inside of them."""
    for graph in graphs_of(node):
        for each in graph.node:
            yield each
            yield from _nodes_inside(each)


def _is_converting(node: NodeProto) -> bool:
    """Whether a node converts elements, or is of a domain whose nodes may."""
    return bool(domain_of(node)) or any(x in text_of(node.op_type) for x in ("Cast", "Quantize"))


_COMPARED = 1 << 12
"""The most bytes of an operand that each call compares with a constant."""


def _as_unsigned(array: NDArray[Any]) -> Any:
    """Return signed bytes as unsigned ones, which are 128 larger."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(array.shape) ^ np.uint8(128)


def _signed_factor(node: NodeProto, types: Mapping[str, Any]) -> dict[int, str]:
    """Return new names for a signed factor of an unsigned one, and for its zero point, by place.

    On processors without an instruction for sums of four products of bytes, onnxruntime saturates
    the sums of two products of an unsigned and a signed byte. It is exact for unsigned bytes: those
    that are 128 larger, as the zero point is.
    """
    places = () if domain_of(node) else _FACTORS.get(node.op_type, ())
    kinds = [types[node.input[place]].tensor_type.elem_type for place, _ in places]
    if sorted(kinds) != [_UINT8, _INT8]:
        return {}
    factor, zero = places[kinds.index(_INT8)]
    has_zero = zero < len(node.input) and node.input[zero]
    return {factor: "unsigned", zero: "unsigned_zero" if has_zero else _ZERO}


_ZERO = "unsigned_0"
"""The name of the zero point of a signed factor that has none: 128."""

_UINT8, _INT8 = 2, 3
"""ONNX's numbers of these dtypes (TensorProto.DataType)."""

_FACTORS = {
    "ConvInteger": ((0, 2), (1, 3)),
    "MatMulInteger": ((0, 2), (1, 3)),
    "QLinearConv": ((0, 2), (3, 5)),
    "QLinearMatMul": ((0, 2), (3, 5)),
}
"""The place of each factor, and of its zero point, among the operands of products of bytes."""


def _raise(error: Exception, *_: Any) -> Any:
    raise error


def _is_by_reference(node: NodeProto) -> bool:
    """Whether the reference evaluator comes first: where onnxruntime deviates from the standard."""
    modes = [text_of(each.s) for each in node.attribute if each.name == _MODE]
    is_resize = node.op_type == "Resize" and modes == ["align_corners"]
    return is_resize or node.op_type in _DEVIATIONS or domain_of(node) == "ai.onnx.ml"


_MODE = "coordinate_transformation_mode"

_DEVIATIONS = frozenset(("Attention", "DFT", "MaxUnpool", "STFT"))
"""The ops of ONNX for which onnxruntime 1.32 fails node tests of onnx 1.23."""


def _onnxruntime(node: NodeProto, model: Any) -> Any:
    return _session(model).run


def _session(model: Any) -> Any:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    data, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    return runtime.InferenceSession(data, options, providers=providers)


def _evaluator(node: NodeProto, model: Any) -> Any:
    """Return the function of a model by the reference evaluator, for an audit that checks it."""
    return import_module("onnx.reference").ReferenceEvaluator(model).run


_WIDE_ENGINES = _onnxruntime, _evaluator


def _reference(node: NodeProto, model: Any) -> Any:
    """Return the function of a model; NotImplementedError for what onnx 1.23 computes wrongly."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    ceils = "ceil_mode" in attributes and attributes["ceil_mode"].i
    is_cell = node.op_type in ("LSTM", "GRU", "RNN")
    has_sizes = is_cell and len(node.input) > 4 and node.input[4]
    settings = is_cell and {"clip", "activations"} & attributes.keys()
    evaluator = import_module("onnx.reference").ReferenceEvaluator(model)
    version = next((each.version for each in model.opset_import if not each.domain), 0)
    is_other = not domain_of(node) and _is_other_form(node.op_type, version, evaluator)
    if node.op_type in ("LRN", "Loop") or ceils or has_sizes or settings or is_other:
        raise NotImplementedError("onnx's reference evaluator deviates here; install onnxruntime")
    return evaluator.run


def _is_other_form(op: str, version: int, evaluator: Any) -> bool:
    """Whether the evaluator computes a form of an op with other parameters than the version's.

    A class of the evaluator that names no version has the latest form. Softmax before opset 13 has
    another axis by default, for example.
    """
    schema_of = import_module("onnx.defs").get_schema
    name = type(evaluator.rt_nodes_[0]).__name__
    number, schema = name.rpartition("_")[2], schema_of(op, version, "")
    if op == "BatchNormalization" and 9 <= schema.since_version < 14:
        return True  # it updates the mean and variance
    other = schema_of(op, int(number), "") if number.isdecimal() else schema_of(op, "")
    return schema.since_version != other.since_version and _form(schema) != _form(other)


def _form(schema: OpSchema) -> Any:
    """Return the parameters of an op, and the default values of its attributes."""
    attributes = {
        name: attribute.default_value.SerializeToString()
        for name, attribute in schema.attributes.items()
        if name != "consumed_inputs"
    }
    return attributes, [each.name for each in schema.inputs], len(schema.outputs)
