"""Nodes that no op stands for: the op `call`, which onnxruntime or onnx itself computes."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from graphir import ExecutionError, GraphError
from runtime.sources.onnx_.model import OnnxModel, domain_of


class BoundNode:
    """A node with its attributes, as a function of arrays: one for each of `names`.

    `types` are the types of the names, messages of ONNX. onnx's reference evaluator computes the
    node, or onnxruntime, whichever of them comes first for the op and takes the arrays.
    """

    def __init__(
        self, model: OnnxModel, node: Any, types: Mapping[str, Any], opsets: Mapping[str, int]
    ) -> None:
        self._model, self._node, self._types, self._opsets = model, node, types, opsets
        self._runs: dict[Any, Any] = {}  # by engine

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Return the results of the node."""
        feeds = dict(zip(self._types, arrays, strict=True))
        problems: list[str] = []
        engines = _reference, _onnxruntime
        for engine in reversed(engines) if self._node.op_type in _BY_ONNXRUNTIME else engines:
            try:
                if engine not in self._runs:
                    self._runs[engine] = engine(self._node, self._whole())
                return tuple(self._runs[engine](None, feeds))
            except Exception as error:  # each engine has exceptions of its own
                problems.append(f"{type(error).__name__}: {error}".partition("\n")[0][:300])
        raise ExecutionError(f"onnx.{self._node.op_type}: {'; '.join(problems)}")

    def renamed(self, inputs: Sequence[str], outputs: Sequence[str], opset: int) -> Any:
        """Return the node with other names of its operands and results, for a model of an opset.

        Raises GraphError for a node with graphs, and for one that is no one node in that opset.
        """
        node = self._model.whole(self._node)
        if not node.domain and self._opsets[""] != opset:
            try:
                model = import_module("onnx.version_converter").convert_version(
                    self._whole(), opset
                )
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

    def _whole(self) -> Any:
        """Return a model of the node alone."""
        helper = self._model.onnx.helper
        inputs = [helper.make_value_info(name, type_) for name, type_ in self._types.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self._node.output if name]
        graph = helper.make_graph([self._model.whole(self._node)], "call", inputs, outputs)
        opsets = [helper.make_opsetid(*pair) for pair in self._opsets.items()]
        functions = self._model.proto.functions if any(graphs_of(self._node)) else ()
        return helper.make_model(
            graph,
            opset_imports=opsets,
            functions=[*map(self._model.whole, functions)],
            ir_version=max(self._model.proto.ir_version, 10),
        )


_OPS = "Conv ConvTranspose MaxPool AveragePool LpPool LSTM GRU RNN LRN Loop"
_BY_ONNXRUNTIME = frozenset(_OPS.split())
"""The ops for which the reference evaluator is slow, or deviates from the standard.

For other ops it is onnxruntime that deviates (DFT, STFT, MaxUnpool, some modes of Resize).
"""


def _onnxruntime(node: Any, model: Any) -> Any:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    data, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    return runtime.InferenceSession(data, options, providers=providers).run


def _reference(node: Any, model: Any) -> Any:
    """Return the function of a model; NotImplementedError for what onnx 1.23 computes wrongly."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    ceils = "ceil_mode" in attributes and attributes["ceil_mode"].i
    is_cell = node.op_type in ("LSTM", "GRU", "RNN")
    has_sizes = is_cell and len(node.input) > 4 and node.input[4]
    settings = is_cell and {"clip", "activations"} & attributes.keys()
    if node.op_type in ("LRN", "Loop") or ceils or has_sizes or settings:
        raise NotImplementedError("onnx's reference evaluator deviates here; install onnxruntime")
    return import_module("onnx.reference").ReferenceEvaluator(model).run


def text_of_points(points: Any) -> tuple[Any, ...]:
    """Return the text of the numbers of its characters, which are the last axis."""
    size = points.shape[-1]
    if not points.size:
        return (np.full(points.shape[:-1], "", object),)
    if points.max() > sys.maxunicode:
        raise ExecutionError("the number of a character is too large", got=str(points.max()))
    return (np.ascontiguousarray(points).view(f"U{size}")[..., 0].astype(object),)


def points_of_text(text: Any) -> tuple[Any, ...]:
    """Return the numbers of the characters of text, on a last axis."""
    return (np.asarray(text, "U")[..., None].view(np.uint32),)


def graphs_of(node: Any) -> Iterator[Any]:
    """Yield the graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def outer_names(graphs: Iterable[Any]) -> list[str]:
    """Return the names of the values that graphs use from outside, in the order of their use."""
    names: dict[str, None] = {}
    for graph in graphs:
        inner = {x.name for x in (*graph.input, *graph.initializer)}
        inner |= {x.values.name for x in graph.sparse_initializer}
        for node in graph.node:
            used = [*node.input, *outer_names(graphs_of(node))]
            names.update(dict.fromkeys(name for name in used if name and name not in inner))
            inner.update(node.output)
        names.update(dict.fromkeys(x.name for x in graph.output if x.name not in inner))
    return [*names]


def result_names(node: Any) -> Sequence[str]:
    """Return the names of the results of a node that have one."""
    return [name for name in node.output if name]
