"""Types of results that ONNX does not infer.

Sources: Operators.md and Operators-ml.md of ONNX 1.23, ContribOperators.md of onnxruntime 1.32.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from graphir import Symbol, TensorType

ResultType: TypeAlias = tuple[int, list[Any]]

_FLOAT, _INT64, _STRING = 1, 7, 8  # TensorProto.DataType


def rank_of(op: str, attrs: Mapping[str, Any], args: Sequence[Symbol | None]) -> int | None:
    """Return the rank of the results of an op of ai.onnx that the ranks and lengths of args tell.

    The elements of a shape, of axes or of pads may be unknown. The answer is None where the rank is
    unknown, and for an op whose rank ONNX infers itself.
    """
    first, second = ([*args, None, None])[:2]
    rank, length = _rank(first), _length(second)
    if op == "STFT":
        return 4
    if op == "Reshape":
        return length
    if op == "ConstantOfShape":
        return _length(first)
    if op == "Expand":
        return None if rank is None or length is None else max(rank, length)
    if op in _SAME_RANK:
        return rank
    if op.startswith("Reduce") and rank is not None:
        return rank if attrs.get("keepdims", 1) else None if length is None else rank - length
    if op in ("Squeeze", "Unsqueeze") and rank is not None and length is not None:
        return rank + length if op == "Unsqueeze" else max(rank - length, 0)
    return None


_SAME_RANK = frozenset(("Slice", "Tile", "Pad", "Resize", "Upsample", "Trilu", "CenterCropPad"))
"""The ops whose results have the rank of the first operand."""


def _rank(x: Symbol | None) -> int | None:
    return x.rank if x is not None and type(x.type) is TensorType else None


def _length(x: Symbol | None) -> int | None:
    """Return the known length of a vector; None for other operands."""
    size = x.shape[0] if x is not None and _rank(x) == 1 else None
    return size if isinstance(size, int) else None


def result_types(op: str, attrs: Mapping[str, Any], operand: Any) -> list[ResultType]:
    """Return the dtypes of ONNX and the shapes of an op's results; None is an unknown size.

    `operand` is the ONNX type of the first operand. The op may be onnxruntime's own.
    """
    sizes: list[Any] = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
        for dim in operand.tensor_type.shape.dim
    ]
    rows = sizes[0] if len(sizes) > 1 else 1
    if op == "Tokenizer":
        return [(_STRING, [*sizes, None])]
    if op == "SVMRegressor":
        return [(_FLOAT, [rows, 1])]
    if op == "TreeEnsembleRegressor":
        return [(_FLOAT, [rows, attrs.get("n_targets", 1)])]
    if op in ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"):
        is_int = any(attrs.get(name) for name in ("classlabels_int64s", "classlabels_ints"))
        return [(_INT64 if is_int else _STRING, [rows]), (_FLOAT, [rows, None])]
    return []
