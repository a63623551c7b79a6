"""PYTHON: the table of the NumPy expressions of ops, casts and constants.

An op without an entry decomposes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import (
    Conversions,
    Step,
    convert,
    plain,
    round_to_odd,
    rounding,
    same_value,
    sticky,
)
from graphir.ir.operators.in_place import SIGNS
from graphir.ops.dims import Dim, Size
from graphir.promotion.scalars import scalar
from graphir.public import DType, Symbol
from graphir.runtime.binding import numpy_name
from graphir.runtime.targets.emission import op_names

_MAX_WRITTEN = 64
"""The most elements of a constant that is written number by number; larger ones are bytes."""


def number(value: complex) -> str:
    """Return a Python number as an expression."""
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    if isinstance(value, float) and (value != value or value in (np.inf, -np.inf)):
        return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def literal(value: complex | str) -> str:
    """Return a number or a string as an expression."""
    return word(value) if isinstance(value, str) else number(value)


def word(value: str) -> str:
    """Return a string as an expression, in ASCII."""
    text = ascii(value)
    return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text else text


def constant(array: NDArray[Any], dtype: DType) -> str:
    """Return an array of known values as an expression."""
    name, wide = numpy_name(dtype), plain(dtype)
    if array.size > _MAX_WRITTEN:
        text = base64.b85encode(np.ascontiguousarray(array).tobytes()).decode()
        raw = f'np.frombuffer(base64.b85decode("{text}"), np.uint8)'
        return f"{raw}.view({name}).reshape({array.shape})"
    values = convert(array, dtype, wide)
    if not array.ndim and name.startswith("np."):
        return f"{name}({number(values.item())})"
    array_text = f"np.array({_nested(values.tolist())}, {numpy_name(wide)})"
    array_text = array_text if array.size else f"np.zeros({array.shape}, {numpy_name(wide)})"
    return array_text if numpy_name(wide) == name else f"{array_text}.astype({name})"


def _nested(values: Any) -> str:
    return f"[{', '.join(map(_nested, values))}]" if isinstance(values, list) else number(values)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class PythonConversions(Conversions):
    """The steps of casts, each of which maps an expression to an expression.

    A step adds the helpers that its expression names to `uses`.
    """

    def __init__(self, uses: set[str]) -> None:
        self.uses = uses

    def cast(self, source: DType, target: DType) -> Step:
        """Return the step of the conversion by NumPy or ml_dtypes."""
        if source.storage == target.storage:
            return same_value
        return lambda x: f"{x}.astype({numpy_name(target)})"

    def widen(self, source: DType) -> Step:
        """Return the step of the conversion by NumPy or ml_dtypes to a wider dtype."""
        return self.cast(source, plain(source))

    def saturate(self, target: DType) -> Step:
        """Return the step that calls `saturated` of graphir.conversions."""
        limits = f"{target.min}, {target.max}"
        return self._call("saturated", numpy_name(plain(target)), limits)

    def to_odd(self, source: DType) -> tuple[Step, ...]:
        """Return the steps that call `sticky` and `round_to_odd` of graphir.conversions."""
        functions: dict[Any, Step] = {
            sticky: self._call("sticky"),
            round_to_odd: self._call("round_to_odd"),
        }
        return tuple([functions.get(step, step) for step in super().to_odd(source)])

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step that calls a rounding of graphir.conversions, and stores by ml_dtypes."""
        if target is DType.bfloat16:
            return self.cast(DType.float32, target)
        function = rounding(target, tf32)
        settings = [f"{name}={literal(value)}" for name, value in function.keywords.items()]
        round_call, store = (
            self._call(function.func.__name__, *settings),
            self.cast(plain(target), target),
        )
        return lambda x: store(round_call(x))

    def _call(self, function: str, *settings: str) -> Step:
        """Return the step that calls a helper; the step adds the helper to `uses` when it runs."""

        def call(x: str) -> str:
            self.uses.add(function)
            return f"{function}({', '.join([x, *settings])})"

        return call


def cast_expression(x: str, source: DType, target: DType, tf32: str, uses: set[str]) -> str:
    """Return the expression that casts `x` with the bits of graphir.conversions.

    The helpers that the expression names are added to `uses`.
    """
    return PythonConversions(uses).convert(x, source, target, tf32)


@dataclass(frozen=True, slots=True)
class Line:
    """A symbol to write: its operands as expressions, the function for dims, and used helpers."""

    symbol: Symbol
    args: tuple[str, ...]
    size: Callable[[Size], str]
    uses: set[str]

    def __getitem__(self, name: Any) -> Any:
        """Return an operand by position, or an attribute by name, as an expression."""
        return self.args[name] if isinstance(name, int) else self.text(self.symbol.attrs[name])

    def text(self, value: Any) -> str:
        """Return an attribute as an expression, with dims by their names."""
        if isinstance(value, (tuple, list)):
            return self.tuple(value)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, str):
            return word(value)
        return self.size(value) if isinstance(value, Dim) else repr(value)

    def tuple(self, values: Iterable[Any]) -> str:
        """Return a tuple as an expression."""
        texts = [self.text(value) for value in values]
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"

    def use(self, helper: str) -> str:
        """Return the name of a helper, and add it to `uses`."""
        self.uses.add(helper)
        return helper

    @property
    def dtype(self) -> str:
        """The dtype of the result, as an expression."""
        return numpy_name(self.symbol.dtype)


Row = Callable[[Line], str]


def _call(function: str) -> Row:
    return lambda line: f"{function}({', '.join(line.args)})"


def _infix(sign: str, function: str) -> Row:
    """Return the row of an infix operator.

    Operands of rank 0 or of two dtypes use the ufunc instead, because the operators of NumPy
    scalars may convert differently.
    """

    def text(line: Line) -> str:
        x, y = line.symbol.args
        if x.dtype is not y.dtype or not (x.rank and y.rank):
            return f"{function}({line[0]}, {line[1]})"
        return f"{line[0]} {sign} {line[1]}"

    return text


def _helper(name: str, *attrs: str) -> Row:
    def text(line: Line) -> str:
        settings = [f"{attr}={line[attr]}" for attr in attrs]
        return f"{line.use(name)}({', '.join([*line.args, *settings])})"

    return text


def _over_axes(helper: str, name: str, function: str) -> Row:
    """Return the row of a helper that applies a function of NumPy over axes, and names the op."""
    return lambda line: (
        f"{line.use(helper)}({word(name)}, np.{function}, {line[0]}, {line['axis']}, "
        f"{line['keepdims']})"
    )


def _located(name: str) -> Row:
    """Return the row of an argmax or argmin."""
    row = _over_axes("_locate", name, name)
    return lambda line: _positions(line, row(line))


def _reduced(function: str) -> Row:
    return lambda line: (
        f"{function}.reduce({line[0]}, axis={line['axis']}, dtype={numpy_name(_of(line))}, "
        f"keepdims={line['keepdims']})"
    )


def _accumulated(function: str) -> Row:
    return lambda line: f"{function}.accumulate({line[0]}, axis={line['axis']}, dtype={line.dtype})"


def _of(line: Line) -> DType:
    return line.symbol.args[0].dtype


def _positions(line: Line, text: str) -> str:
    """Return the expression that casts int64 indices to the dtype of the result."""
    return cast_expression(text, DType.int64, line.symbol.dtype, "even", line.uses)


def _rounding_row(function: str) -> Row:
    return lambda line: (
        f"{line[0]}.copy()" if _of(line).format is None else f"{function}({line[0]})"
    )


def _whole(function: str) -> Row:
    return lambda line: f"{line.use('_call_whole')}({function}, {line[0]}, {line[1]})"


def _plain(template: str) -> Row:
    """Return the row of a template; views are copied, as strides may change bits of functions."""
    return lambda line: template.format(x=line[0], all=", ".join(line.args), **_attrs(line))


def _attrs(line: Line) -> dict[str, str]:
    return {name: line.text(value) for name, value in line.symbol.attrs.items()}


def _slice(line: Line) -> str:
    attrs = line.symbol.attrs
    limits = list(zip(attrs["start"], attrs["stop"], line.symbol.args[0].shape, strict=True))
    if any(not isinstance(limit_, int) for limit in limits for limit_ in limit):
        return f"{_helper('sliced', 'start', 'stop', 'step')(line)}.copy()"
    parts = [
        f"{start}:{stop}" + (f":{step}" if step != 1 else "")
        for (start, stop, _), step in zip(limits, attrs["step"], strict=True)
    ]
    return f"{line[0]}[{', '.join([*parts, '...'])}].copy()"


def _value(line: Line) -> str:
    """Return the value of `full` or `pad` in the dtype of the result, as an expression."""
    symbol = line.symbol
    return constant(scalar(symbol.attrs["value"], symbol.dtype, symbol.graph.tf32), symbol.dtype)


def _pad(line: Line) -> str:
    value = f"np.asarray({_value(line)})"
    return f"{line.use('pad')}({line[0]}, padding={line['padding']}, value={value})"


def _range(line: Line) -> str:
    """Return start + i * step as an expression.

    Integers are computed modulo 2**64, complex numbers in complex128, and floats in float64 and
    rounded once.
    """
    symbol, dtype = line.symbol, line.symbol.dtype
    start, step = symbol.attrs["start"], symbol.attrs["step"]
    if dtype.is_complex:
        wide, text = (
            DType.complex128,
            f"{line.use('_complexes')}({start!r}, {step!r}, {line['size']})",
        )
    elif dtype.is_float:
        wide, text = DType.float64, f"{line.use('_line')}({start!r}, {step!r}, {line['size']})"
    else:
        wide = DType.int64 if dtype.family == "int" else DType.uint64
        limits = f"{int(dtype.min)}, {int(dtype.max)}"
        integers_text = f"{line.use('integers')}({start!r}, {step!r}, {line['size']}, {limits})"
        text = f"{integers_text}.view({numpy_name(wide)})"
    return cast_expression(text, wide, dtype, symbol.graph.tf32, line.uses)


def _cast(line: Line) -> str:
    symbol = line.symbol
    return cast_expression(line[0], _of(line), symbol.dtype, symbol.graph.tf32, line.uses)


_INFIX = op_names(
    "add subtract multiply divide floor_divide remainder bitwise_and bitwise_or bitwise_xor "
    "equal not_equal less less_equal greater greater_equal"
)
_SAME = op_names(
    "fmod maximum minimum negative abs square reciprocal sqrt cbrt exp expm1 log log1p log2 log10 "
    "sin cos tan sinh cosh tanh copysign nextafter signbit logical_and logical_or logical_xor "
    "logical_not left_shift right_shift where matmul"
)
_INVERSE = ("asin", "acos", "atan", "asinh", "acosh", "atanh")

PYTHON: Mapping[str, Row] = {
    **{name: _infix(SIGNS[name], f"np.{name}") for name in _INFIX},
    **{name: _call(f"np.{name}") for name in _SAME},
    **{name: _call(f"np.arc{name[1:]}") for name in _INVERSE},
    # -- arithmetic
    "pow": _helper("_pow"),
    "positive": _plain("{x}.copy()"),
    "sign": lambda line: f"{line[0]}.copy()" if _of(line) is DType.bool else f"np.sign({line[0]})",
    # -- rounding
    "floor": _rounding_row("np.floor"),
    "ceil": _rounding_row("np.ceil"),
    "trunc": _rounding_row("np.trunc"),
    "round": _rounding_row("np.rint"),
    # -- functions of floats
    "erf": _helper("erf"),
    "gelu": lambda line: f"{line.use('gelu')}({line[0]})",
    "atan2": _whole("np.arctan2"),
    "hypot": _whole("np.hypot"),
    "logaddexp": _whole("np.logaddexp"),
    # -- predicates, bits
    "is_nan": _call("np.isnan"),
    "is_inf": _call("np.isinf"),
    "is_finite": _call("np.isfinite"),
    "bitwise_invert": _call("np.invert"),
    # -- selection, conversion, complex numbers
    "cast": _cast,
    "real": _plain("{x}.real.copy()"),
    "imag": _plain("{x}.imag.copy()"),
    "conj": lambda line: f"np.conj({line[0]})" if _of(line).is_complex else f"{line[0]}.copy()",
    "as_complex": _helper("_as_complex"),
    # -- reductions and rows
    "sum": _reduced("np.add"),
    "numpy_sum": _helper(
        "numpy_sum", "axis", "keepdims", "selection", "layout", "buffered", "initial"
    ),
    "prod": _reduced("np.multiply"),
    "max": _over_axes("_extreme", "max", "maximum"),
    "min": _over_axes("_extreme", "min", "minimum"),
    "mean": _helper("mean", "axis", "keepdims"),
    "var": _helper("var", "axis", "keepdims", "correction"),
    "any": _reduced("np.logical_or"),
    "all": _reduced("np.logical_and"),
    "argmax": _located("argmax"),
    "argmin": _located("argmin"),
    "cumulative_sum": _accumulated("np.add"),
    "cumulative_prod": _accumulated("np.multiply"),
    "sort": _helper("sort_along", "axis", "descending"),
    "argsort": lambda line: _positions(line, _helper("sort_places", "axis", "descending")(line)),
    "searchsorted": lambda line: _positions(line, _helper("_searchsorted", "side")(line)),
    # -- movement
    "reshape": _plain("{x}.reshape({shape})"),
    "broadcast_to": _plain("np.broadcast_to({x}, {shape}).copy()"),
    "rebind": _helper("rebind", "shape"),
    "transpose": _plain("np.swapaxes({x}, {axis1}, {axis2}).copy()"),
    "permute": _plain("{x}.transpose({dims}).copy()"),
    "squeeze": _plain("np.squeeze({x}, {axis})"),
    "unsqueeze": _plain("np.expand_dims({x}, {axis})"),
    "slice": _slice,
    "item": _plain("np.asarray({x}[{index}])"),
    "slice_update": _helper("slice_update", "start", "stop", "step"),
    "flip": _plain("np.flip({x}, {axis}).copy()"),
    "roll": _plain("np.roll({x}, {shift}, {axis})"),
    "pad": _pad,
    "tile": _plain("np.tile({x}, {repeats})"),
    "repeat": _plain("np.repeat({x}, {repeats}, {axis})"),
    "concat": _plain("np.concatenate([{all}], {axis})"),
    "stack": _plain("np.stack([{all}], {axis})"),
    "gather": _helper("gather", "axis"),
    "take_along": _helper("take_along", "axis"),
    "scatter": _helper("scatter", "axis"),
    "index_update": _helper("index_update", "axis"),
    "index_add": _helper("index_add", "axis"),
    # -- creation
    "constant": lambda line: constant(line.symbol.attrs["value"], line.symbol.dtype),
    "full": lambda line: f"np.full({line['shape']}, {_value(line)}, {line.dtype})",
    "range": _range,
    "eye": lambda line: cast_expression(
        f"np.eye({line['rows']}, {line['columns']}, {line['offset']}, dtype=np.bool_)",
        *(DType.bool, line.symbol.dtype, "even", line.uses),
    ),
    "shape_of": lambda line: _positions(line, f"np.array({line[0]}.shape, dtype=np.int64)"),
}
"""Each row maps a Line to an expression; helpers are excerpts of graphir's own source."""

COMPOSITES = frozenset(PYTHON) - {"gelu", "real", "imag", "reciprocal", "signbit"}
"""The composite ops that stay whole because NumPy has functions for them.

The remaining entries of PYTHON handle only operands for which the op is primitive."""
