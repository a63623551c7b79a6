"""Nodes that no op stands for: the op `call`, which ONNX's reference evaluator computes."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from graphir import ExecutionError
from runtime.sources.onnx_.model import OnnxModel


class BoundNode:
    """A node with its attributes, as a function of arrays: one for each of `names`.

    `types` are the types of the names, messages of ONNX. onnxruntime computes what the reference
    evaluator does not have, and loops: the reference evaluator joins the rows of their results
    instead of stacking them.
    """

    def __init__(
        self, model: OnnxModel, node: Any, types: Mapping[str, Any], opsets: Mapping[str, int]
    ) -> None:
        self._model, self._node, self._types, self._opsets = model, node, types, opsets
        self._run: Any = None

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Return the results of the node."""
        feeds = dict(zip(self._types, arrays, strict=True))
        if self._run is not None:
            return tuple(self._run(None, feeds))
        model, problems = self._whole(), list[str]()
        engines = [self._reference, self._onnxruntime]
        for engine in reversed(engines) if self._node.op_type == "Loop" else engines:
            try:
                run = engine(model)
                results = tuple(run(None, feeds))
            except Exception as error:  # each engine has exceptions of its own
                problems.append(f"{type(error).__name__}: {error}".split("\n")[0])
                continue
            self._run = run
            return results
        raise ExecutionError(f"onnx.{self._node.op_type}: {'; '.join(problems)}")

    def _reference(self, model: Any) -> Any:
        return import_module("onnx.reference").ReferenceEvaluator(model).run

    def _onnxruntime(self, model: Any) -> Any:
        data = model.SerializeToString()
        runtime = import_module("onnxruntime")
        return runtime.InferenceSession(data, providers=["CPUExecutionProvider"]).run

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
