"""Rows of the ops of the operator set ai.onnx.ml.

Source: Operators-ml.md of ONNX 1.23. onnxruntime computes in float32, whatever the input.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphir import DType, Symbol, ops
from graphir.runtime.sources.onnx_.rows import NodeCall, row


def _floats(e: NodeCall, values: Sequence[float]) -> Symbol:
    return e.constant(np.array(values, np.float32))


@row("Scaler")
def _scaler(e: NodeCall, x: Any, offset: Sequence[float], scale: Sequence[float]) -> Any:
    centered = e(ops.subtract, e.cast(x, DType.float32), _floats(e, offset))
    return e(ops.multiply, centered, _floats(e, scale))


@row("Normalizer")
def _normalizer(e: NodeCall, x: Any, norm: str) -> Any:
    x = e.cast(x, DType.float32)
    size = e(ops.multiply, x, x) if norm == "L2" else e(ops.abs, x)
    if norm == "MAX" or x.rank != 2:
        return None
    total = e(ops.sum, size, axis=1, keepdims=True)
    total = e(ops.sqrt, total) if norm == "L2" else total
    return e(ops.divide, x, e(ops.maximum, total, 1e-30))


@row("Imputer")
def _imputer(e: NodeCall, x: Any, **attrs: Any) -> Any:
    kind = "float" if x.dtype.is_float else "int64"
    values, missing = attrs.get(f"imputed_value_{kind}s"), attrs.get(f"replaced_value_{kind}", 0)
    if not values:
        return None
    is_missing = e(ops.is_nan, x) if missing != missing else e(ops.equal, x, missing)
    imputed = e.constant(np.array(values, x.dtype.storage))
    return e(ops.where, is_missing, e.spread(imputed, x.shape), x)


@row("Binarizer")
def _binarizer(e: NodeCall, x: Any, threshold: float) -> Any:
    return e.cast(e(ops.greater, x, threshold), x.dtype)


@row("ArrayFeatureExtractor")
def _array_feature_extractor(e: NodeCall, x: Any, places: Any) -> Any:
    columns = e(ops.gather, x, e.shaped(places, (places.size,)), axis=x.rank - 1)
    return columns if x.rank > 1 else e.shaped(columns, (1, places.size))


@row("LinearRegressor")
def _linear_regressor(
    e: NodeCall,
    x: Any,
    coefficients: Sequence[float],
    intercepts: Sequence[float] = (),
    targets: int = 1,
    post_transform: str = "NONE",
) -> Any:
    if post_transform != "NONE" or x.rank != 2:
        return None
    weights = np.array(coefficients, np.float32).reshape(targets, -1).T
    score = e(ops.matmul, e.cast(x, DType.float32), e.constant(weights))
    return e(ops.add, score, _floats(e, intercepts)) if intercepts else score


@row("ZipMap")
def _zip_map(e: NodeCall, x: Any, **_: Any) -> Any:
    """The array itself: the graph has no maps."""
    return x
