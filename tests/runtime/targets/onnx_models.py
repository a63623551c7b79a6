"""ONNX models, checked in full and run: by onnxruntime, else by the reference evaluator."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from onnxruntime import OrtValue
from onnxruntime.capi import onnxruntime_pybind11_state as state

from graphir import DType, Graph, GraphirError, ops

REFUSED = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError)
NO_KERNEL = (state.NotImplemented, state.Fail)
RAISED = (state.Fail, state.InvalidArgument, IndexError, ValueError, RuntimeError, AssertionError)
_INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_PLAIN = ("bool", *_INTEGERS, "float16", "float32", "float64")
onnxruntime.set_default_logger_severity(4)


def checked(model: Any) -> Any:
    """The model, which the checker accepts; one of REFUSED for what it does not."""
    onnx.checker.check_model(model, full_check=True)
    return model


def session(model: Any) -> Any:
    """What onnxruntime makes of a model; one of NO_KERNEL where it lacks a kernel."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    serialized = model.SerializeToString()
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(serialized, options, providers=providers)


class Run:
    """A model to be run, and by what."""

    def __init__(self, model: Any) -> None:
        self.model, self.session = checked(model), None
        with suppress(*NO_KERNEL):
            self.session = session(model)
        self.engine = "onnxruntime" if self.session else "reference"

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs, as arrays; one of RAISED where the run fails."""
        given = {
            one.name: np.asarray(x, order="C")
            for one, x in zip(self.model.graph.input, inputs, strict=True)
        }
        if self.session is None:
            with np.errstate(all="ignore"):
                return [np.asarray(x) for x in ReferenceEvaluator(self.model).run(None, given)]
        if any(_bits(info) < 8 for info in self.model.graph.input):
            model = embedded(self.model, given)
            return _bound(session(model), model, {})
        return _bound(self.session, self.model, given)


def embedded(model: Any, given: dict[str, Any]) -> Any:
    """The model with these inputs inside: several elements in a byte are no array of NumPy's."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    del new.graph.input[:]
    new.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in given.items())
    return new


def _bits(info: Any) -> int:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    return 4 if "int4" in dtype.name or "int2" in dtype.name else 8


def _bound(session: Any, model: Any, given: dict[str, Any]) -> list[Any]:
    """By values that keep their element types, those of ml_dtypes too."""
    binding = session.io_binding()
    for info in model.graph.input:
        binding.bind_ortvalue_input(info.name, _value(given[info.name], info))
    for info in model.graph.output:
        binding.bind_output(info.name)
    session.run_with_iobinding(binding)
    return [
        _array(one, info)
        for one, info in zip(binding.get_outputs(), model.graph.output, strict=True)
    ]


def _value(array: Any, info: Any) -> Any:
    if array.dtype.name in _PLAIN:
        return OrtValue.ortvalue_from_numpy(array)
    raw = array.view(f"u{array.itemsize}")
    element = info.type.tensor_type.elem_type
    return OrtValue.ortvalue_from_numpy_with_onnx_type(raw, element)


def _array(value: Any, info: Any) -> Any:
    tensor = onnx.TensorProto(data_type=info.type.tensor_type.elem_type, dims=value.shape())
    tensor.raw_data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return onnx.numpy_helper.to_array(tensor)


def near(one: Any, other: Any, ulps: float = 32, within: float = 0.0) -> bool:
    """Whether two arrays are of one type, and floats near each other: engines have their own order.

    In units of the last place, or within an absolute distance.
    """
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if not DType.from_numpy(one.dtype).is_float:
        return bool((one == other).all())
    info = ml_dtypes.finfo(one.dtype)
    with np.errstate(all="ignore"):
        wide = one.astype(np.float64), other.astype(np.float64)
    limits = float(info.eps) * ulps, max(within, float(info.tiny))
    return bool(np.allclose(*wide, *limits, equal_nan=True))


def outcome(function: Any, *inputs: Any) -> list[Any] | None:
    """The results as arrays; None where there are none."""
    try:
        found = function(*inputs)
    except (GraphirError, *RAISED):
        return None
    return [np.asarray(one) for one in (found if isinstance(found, tuple | list) else (found,))]


def of(name: str, *inputs: Any, **attrs: Any) -> Graph:
    """The graph of one op on inputs like these."""
    g = Graph(name)
    taken = [g.input(DType.from_numpy(x.dtype), x.shape) for x in inputs]
    g.output(ops.CATALOGUE[name](*taken, **attrs))
    return g


def reference(made: Any) -> Run:
    """A run by the reference evaluator."""
    run = Run(made)
    run.session = None
    return run


class Deviation(NamedTuple):
    """What engines mean otherwise: an op on values, how far off they are at most, and why."""

    op: str
    inputs: tuple[Any, ...]
    within: float
    why: str
    attrs: Any = MappingProxyType({})


F32, F64 = np.float32, np.float64
DEVIATIONS = [
    Deviation("gelu", (F32([-7.0, -3.5]),), 1e-7, "1 + erf cancels where x is negative"),
    Deviation("gelu", (F64([-7.0, -3.5]),), 1e-7, "and is of float32 in the reference evaluator"),
    Deviation("erf", (F64([0.5, 1e-60]),), 1e-7, "is of float32 in the reference evaluator"),
    Deviation("tanh", (F32([1e-38]),), 1e-41, "onnxruntime's is an approximation near 0"),
    Deviation("tanh", (F64([14.137166941154069]),), 1e-15, "and less exact elsewhere"),
    Deviation("sin", (np.full(16, 3 * np.pi),), 1e-15, "of 8 and more is inexact near its zeros"),
    Deviation("cos", (np.full(16, 3.5 * np.pi),), 1e-15, "of 8 and more is inexact near its zeros"),
    Deviation("sum", (F32([1e8, 1, -1e8, 1, 0, 0, 0, 0]),), 8, "is added in another order"),
    Deviation("prod", (F32([1e30, 1e30, 1e-30, 1e-30]),), np.inf, "is another order's"),
    Deviation("searchsorted", (F64([3, 1, 2]), F64([2.5])), 1, "counts, so unsorted is another"),
]
ENGINE = {"sin": 20, "cos": 20, "tan": 20}
"""Units of an engine's own, where they are more than 3: of float64, far from 0."""
LOOSE = {one.op: one.within for one in DEVIATIONS if one.op in ("gelu", "erf")}
ZEROS = ("maximum", "minimum", "clip", "relu")
"""Ops that give either of two zeros, as does NumPy: by the machine."""
