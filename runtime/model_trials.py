"""Model trials: an ONNX model is edited, checked and run, before a fix of it is called good.

An edit converts operands that ONNX refuses, or computes some nodes in a wider type: a Cast before
them, and one back to the type that the rest of the model has. The region starts at the nodes that
lost values, and grows by the nodes behind it until the results are right.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.import_names import optional
from graphir.passes.analysis.casts.report import CastReport
from graphir.passes.analysis.casts.sites import size_of
from graphir.passes.analysis.explanations.causes import LossCause
from graphir.public import DType, ExecutionError, GraphirError
from graphir.runtime.audit.audit import audit
from graphir.runtime.audit.trials import eps, most_left
from graphir.runtime.sources.onnx_.model import DTYPES, graphs_of
from graphir.runtime.sources.onnx_.nodes import location_of, outer_names
from graphir.runtime.sources.onnx_.source import OperandCast, from_onnx, import_model

MOST_GROWTH = 5
"""How often a region grows by the nodes behind it."""
_NUMBERS = {str(dtype): number for number, dtype in DTYPES.items()}


class ModelTrial(NamedTuple):
    """An edited model and the errors of its outputs in onnxruntime, or why it is refused."""

    problem: str
    proto: Any = None
    errors: tuple[float, ...] = ()


class ModelTrials:
    """The trials of edits of one model on `inputs`, by name, whose audit is `report`."""

    def __init__(self, proto: Any, inputs: Mapping[str, NDArray[Any]], report: CastReport) -> None:
        self._onnx = optional("onnx", "onnx", "graphir fix")
        self._runtime = optional("onnxruntime", "onnxruntime", "graphir fix")
        self._proto, self._inputs, self.report = proto, inputs, report
        self._mended = set[int]()  # the outputs whose errors the edit is to remove

    def until_one_holds(self) -> Iterator[ModelTrial]:
        """Try edits of the model, the smallest first, and yield the trials."""
        for proto in self._edited():
            trial = self._tried(proto)
            yield trial
            if not trial.problem:
                return

    def _edited(self) -> Iterator[Any]:
        """Yield the models to try: with the casts, and with regions around the lossy nodes."""
        casts = import_model(self._proto, {})[1]
        base = self._with_casts(casts) if casts else self._proto
        causes = [x for x in self.report.loss_causes if x.outputs]
        if casts and not causes:
            yield base
        groups = [causes, *([x] for x in causes)] if len(causes) > 1 else [causes][: len(causes)]
        for group in groups:
            self._mended = {i for cause in group for i in cause.outputs}
            yield from self._widened(base, group)

    def _tried(self, proto: Any) -> ModelTrial:
        """Check an edited model, and compare its results with the exact ones."""
        try:
            self._onnx.checker.check_model(proto, full_check=True)
            arrays = [np.asarray(x) for x in self._run(proto)]
        except Exception as error:  # of any kind: each package has its own
            return ModelTrial(_first_line(error))
        try:
            again = audit(from_onnx(proto), *self._inputs.values(), blame=False).results
            return ModelTrial("", proto, tuple(self._errors(arrays, again)))
        except GraphirError as error:
            return ModelTrial(str(error))

    def effect(self, trial: ModelTrial) -> str:
        """Return the largest error of an output with an edit, and what it was without."""
        i = max(range(len(trial.errors)), key=lambda i: size_of(self.report.outputs[i]))
        before = f"{size_of(self.report.outputs[i]):.2g}"
        try:
            self._run(self._proto)
        except Exception as error:
            before = f"refused: {_first_line(error)}"
        return f"error {trial.errors[i]:.2g} (was {before})"

    def diff(self, proto: Any, name: str) -> str:
        """Return the nodes and the types of initializers that an edit changes."""
        before, after = self._lines(self._proto), self._lines(proto)
        lines = unified_diff(before, after, f"a/{name}", f"b/{name}", n=1, lineterm="")
        return "\n".join(lines)

    def _run(self, proto: Any) -> Sequence[Any]:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 4
        providers = ["CPUExecutionProvider"]
        data = proto.SerializeToString()
        session = self._runtime.InferenceSession(data, options, providers=providers)
        return session.run(None, dict(self._inputs))

    def _errors(self, *runs: Sequence[NDArray[Any]]) -> Iterator[float]:
        """Yield the error of each output, in both runs; ExecutionError if it is not right.

        onnxruntime computes in float32 where it has no kernel for float16: graphir's own run shows
        whether the model is right in the types that it states.
        """
        report = self.report
        for i, (exact, known) in enumerate(zip(report.references, report.outputs, strict=True)):
            before, dtype = size_of(known), report.explicit.outputs[i].dtype
            if not known.is_known:
                raise ExecutionError(f"the exact value of output{i} is unknown")
            most = most_left(before, dtype) if i in self._mended else max(before, 4 * eps(dtype))
            arrays = [run[i] for run in runs]
            if any(x.shape != report.results[i].shape for x in arrays):
                raise ExecutionError(f"output{i} has another shape")
            if any(x.dtype != report.results[i].dtype for x in arrays):
                raise ExecutionError(f"output{i} has another type")
            error = max(size_of(exact.error_of(x)) for x in arrays)
            if not error <= most:
                raise ExecutionError(
                    f"the error of output{i} is {error:.2g}, and {before:.2g} without the edit"
                )
            yield error

    # -- edits

    def _with_casts(self, casts: Sequence[OperandCast]) -> Any:
        """Return the model with operands converted, and constants whose uses all agree."""
        proto = self._copy(self._proto)
        graph, helper = proto.graph, self._onnx.numpy_helper
        makers = {name: node for node in graph.node for name in node.output}
        wanted = {(x.result, x.place): _NUMBERS[str(x.dtype)] for x in casts}
        uses: dict[str, set[int]] = {}
        for node in graph.node:
            for place, name in enumerate(node.input):
                uses.setdefault(name, set()).add(wanted.get((node.output[0], place), 0))
            for name in outer_names(graphs_of(node)):
                uses.setdefault(name, set()).add(0)
        for output in graph.output:
            uses.setdefault(output.name, set()).add(0)
        stored = {x.name: x for x in graph.initializer}
        for name, node in makers.items():
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                stored[name] = node.attribute[0].t
        for name, types in uses.items():
            if len(types) == 1 and 0 not in types and name in stored:
                tensor, number = stored.pop(name), types.pop()
                with np.errstate(over="ignore"):
                    array = helper.to_array(tensor).astype(DTYPES[number].storage)
                tensor.CopyFrom(helper.from_array(array, tensor.name))
                wanted = {k: v for k, v in wanted.items() if _operand(graph, *k) != name}
        nodes: list[Any] = []
        for node in graph.node:
            for place, name in enumerate(node.input):
                if number := wanted.get((node.output[0], place)):
                    nodes.append(self._cast(name, f"{node.output[0]}_in{place}", number))
                    node.input[place] = nodes[-1].output[0]
            nodes.append(node)
        _replace(graph, nodes)
        return proto

    def _widened(self, base: Any, causes: Sequence[LossCause]) -> Iterator[Any]:
        """Yield the model with growing regions behind the steps of causes in wider types."""
        steps = [x for cause in causes for x in cause.steps]
        names = {x.location.file for x in steps}
        nodes = [*base.graph.node]
        region = {i for i, x in enumerate(nodes) if location_of(x, i + 1, "").file in names}
        bits = min(x.dtype.bits if x.dtype.is_float else 0 for x in steps)
        for _ in range(MOST_GROWTH + 1):
            if not region or any([*graphs_of(nodes[i])] for i in region):
                return
            for wide in _WIDER.get(bits, ()):
                yield self._in_type(base, region, wide)
            results = {name for i in region for name in nodes[i].output}
            grown = region | {i for i, x in enumerate(nodes) if results & {*x.input}}
            if grown == region:
                return
            region = grown

    def _in_type(self, base: Any, region: set[int], wide: DType) -> Any:
        """Return a model that computes a region of nodes in a wide type of floats."""
        proto = self._copy(base)
        graph, number = proto.graph, _NUMBERS[str(wide)]
        types = self._types(base)
        narrow = {n for n, x in DTYPES.items() if x.is_float and 16 <= x.bits < wide.bits}
        nodes, cast_of, own = list[Any](), dict[str, str](), dict[str, str]()
        inside = {name for i in region for name in graph.node[i].output}
        outside = {x.name for x in graph.output}
        for i, node in enumerate(graph.node):
            outside |= {*outer_names(graphs_of(node))} | (set() if i in region else {*node.input})
        for i, node in enumerate(graph.node):
            if i not in region:
                nodes.append(node)
                continue
            for place, name in enumerate(node.input):
                if name in own:
                    node.input[place] = own[name]
                elif types.get(name) in narrow and node.op_type != "Cast":
                    if name not in cast_of:
                        nodes.append(self._cast(name, f"{name}_{wide}", number))
                        cast_of[name] = nodes[-1].output[0]
                    node.input[place] = cast_of[name]
            for attribute in node.attribute:
                if attribute.name in ("to", "dtype") and attribute.i in narrow:
                    attribute.i = number
            nodes.append(node)
            for place, name in enumerate(node.output):
                if types.get(name) in narrow and name in inside:
                    own[name] = node.output[place] = f"{name}_{wide}"
                    if name in outside:
                        nodes.append(self._cast(own[name], name, types[name]))
        _replace(graph, nodes)
        return proto

    def _cast(self, name: str, result: str, number: int) -> Any:
        make = self._onnx.helper.make_node
        return make("Cast", [name], [result], name=f"{result}_cast", to=number)

    def _copy(self, proto: Any) -> Any:
        copy = self._onnx.ModelProto()
        copy.CopyFrom(proto)
        del copy.graph.value_info[:]  # types of values inside, which an edit changes
        return copy

    def _types(self, proto: Any) -> Mapping[str, int]:
        graph = self._onnx.shape_inference.infer_shapes(proto).graph
        infos = [*graph.input, *graph.value_info, *graph.output]
        types = {x.name: x.type.tensor_type.elem_type for x in infos}
        return types | {x.name: x.data_type for x in graph.initializer}

    def _lines(self, proto: Any) -> list[str]:
        names = self._onnx.TensorProto.DataType.Name
        tensors = [f"{names(x.data_type).lower()} {x.name}" for x in proto.graph.initializer]
        printed = (self._onnx.printer.to_text(x) for x in proto.graph.node)
        return [*tensors, *(" ".join(x.split())[:400] for x in printed)]


_WIDER = {16: (DType.float32, DType.float64), 32: (DType.float64,)}
"""The types of a region, by the bits of the step that lost values."""


def _operand(graph: Any, result: str, place: int) -> str:
    return next(x.input[place] for x in graph.node if x.output[0] == result)


def _replace(graph: Any, nodes: Sequence[Any]) -> None:
    copies = [type(x).FromString(x.SerializeToString()) for x in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300]}"
