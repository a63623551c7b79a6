"""ONNX models, checked in full and run: by onnxruntime, else by the reference evaluator."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingImports=false
# (ONNX is no part of the project's own environment.)

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from onnxruntime import OrtValue
from onnxruntime.capi import onnxruntime_pybind11_state as state

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
