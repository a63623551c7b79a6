"""Types of results that ONNX does not infer.

Sources: Operators.md and Operators-ml.md of ONNX 1.23, ContribOperators.md of onnxruntime 1.32.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from graphir import Symbol, TensorType
from graphir.ops.dims import Size

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


Values: TypeAlias = Callable[[Symbol], "list[Any] | None"]
"""Returns the elements of a symbol that depend on no input's elements, ints or dims; else None."""


def sizes_of(
    op: str, attrs: Mapping[str, Any], args: Sequence[Symbol | None], values_of: Values
) -> list[Size] | None:
    """Return the shape of the first result of a convolution, pool or resizing of symbolic sizes.

    The answer is None where the sizes depend on values, and for other ops. Source: the formulas of
    output_shape in Operators.md.
    """
    x = args[0] if args else None
    if x is None or type(x.type) is not TensorType:
        return None
    if op in ("Resize", "Upsample"):
        return _resized(x, [*args[1:]], attrs, values_of)
    if op not in _WINDOWS or x.rank < 3 or attrs.get("ceil_mode"):
        return None
    weight = args[_WINDOWS[op]] if _WINDOWS[op] else None
    if _WINDOWS[op] and (weight is None or weight.rank != x.rank):
        return None
    kernel = attrs.get("kernel_shape") or (weight.shape[2:] if weight is not None else ())
    count, is_transposed = x.rank - 2, op == "ConvTranspose"
    auto_pad = attrs.get("auto_pad") or "NOTSET"
    if (
        len(kernel) != count
        or attrs.get("output_shape")
        or (is_transposed and auto_pad != "NOTSET")
    ):
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


_WINDOWS = {
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose"), 1),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), 0),
    "QLinearConv": 3,
}
"""The ops on windows, and the places of their weights; 0 for a pool."""


def _floor(size: Any, step: int) -> Any:
    return size if step == 1 else size // step


def _resized(
    x: Symbol, others: Sequence[Symbol | None], attrs: Mapping[str, Any], values_of: Values
) -> list[Size] | None:
    """Return the sizes that the last operand of a Resize or Upsample states, or its scales."""
    last = others[-1] if others else None
    values = None if last is None else values_of(last)
    if last is None or values is None or len(values) != x.rank or attrs.get("axes"):
        return None
    if last.dtype.is_integer:
        is_stretch = attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch"
        return values if is_stretch else None
    sizes: list[Size] = []
    for size, scale in zip(x.shape, values, strict=True):
        n: Any = size
        if scale == int(scale):
            sizes.append(n * int(scale))
        elif (1 / scale).is_integer() and int(1 / scale).bit_count() == 1:
            sizes.append(n // int(1 / scale))
        else:
            return None
    return sizes


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
