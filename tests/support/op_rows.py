"""What tests hold of each elementwise op: one row an op, with its references and its error bounds.

A new op needs a row here and no other line in the tests: the tests of kernels, of accuracy, of
targets and the golden list of ops read this table.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

Function = Callable[..., Any]


class Bound(NamedTuple):
    """The greatest distance that graphir promises, in float32 and float64.

    The unit is that of the last place of the result; or, if it is greater, of what `near` gives for
    the operands: where terms cancel, or pass through subnormals, the last places are not there.
    """

    float32: float
    float64: float
    near: Callable[..., Any] = lambda *operands: 0.0


class OpRow(NamedTuple):
    """The row of an op.

    `dtypes` are the kinds of dtypes that the kernel takes: bool, int, uint, float, complex.
    `reference` computes the result on Python's numbers; None for an op that has a test of its own.
    `ints` and `complexes` are the references for these kinds where they differ; a complex reference
    is by default the function of `cmath` with the name of the reference. `bound` is the error that
    graphir promises, `xla` that of XLA if it is another. `truth(mp, *operands)` is the exact result
    by mpmath, whose function of the op's name is the default.
    """

    dtypes: str
    reference: Function | None = None
    ints: Function | None = None
    complexes: Function | None = None
    bound: Bound | None = None
    xla: Bound | None = None
    truth: Function | None = None

    def of_ints(self) -> Function | None:
        """The reference on ints."""
        return self.ints or self.reference

    def of_complexes(self) -> Function | None:
        """The reference on complex numbers."""
        return self.complexes or getattr(cmath, self.reference.__name__, self.reference)

    @property
    def ulps(self) -> float:
        """The units by which the kernel may be off a reference, which has an error of its own."""
        greatest = max(self.bound[:2]) if self.bound else 0
        return greatest + 2 if greatest > 0.5 else 0


# -- references


def _round_even(x: float) -> float:
    return x if not math.isfinite(x) else math.copysign(round(x), x)


def _whole(function: Function) -> Function:
    return lambda x: x if not math.isfinite(x) else math.copysign(function(x), x)


def _sign(x: float) -> float:
    return x if math.isnan(x) else float((x > 0) - (x < 0))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _extreme(choose: Function) -> Function:
    return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else choose(a, b)


def _tail(x: Any) -> Any:
    """The size at which exp(x), in the product x * exp(x), becomes subnormal."""
    return abs(x) * np.finfo(x.dtype).smallest_normal


def _true_sigmoid(mp: Any, x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _true_gelu(mp: Any, x: Any) -> Any:
    return mp.zero if x < -100 else x if x > 100 else x * mp.erfc(-x / mp.sqrt(2)) / 2


ROWS: dict[str, OpRow] = {
    "add": OpRow("biufc", operator.add),
    "subtract": OpRow("iufc", operator.sub),
    "multiply": OpRow("biufc", operator.mul),
    "divide": OpRow("fc", operator.truediv, bound=Bound(0.5, 0.5), truth=lambda mp, x, y: x / y),
    "floor_divide": OpRow("iuf", ints=lambda a, b: a // b if b else 0),
    "remainder": OpRow("iuf", ints=lambda a, b: a % b if b else 0),
    "fmod": OpRow(
        "iuf", math.fmod, ints=lambda a, b: a - b * math.trunc(Fraction(a, b)) if b else 0
    ),
    "pow": OpRow(
        "iufc",
        math.pow,
        complexes=operator.pow,
        bound=Bound(3, 1),
        xla=Bound(0.5, 0.5),
        truth=lambda mp, x, y: mp.power(x, y),
    ),
    "maximum": OpRow("biuf", _extreme(max), ints=max),
    "minimum": OpRow("biuf", _extreme(min), ints=min),
    "negative": OpRow("iufc", operator.neg),
    "positive": OpRow("biufc", operator.pos),
    "abs": OpRow("biufc", abs),
    "sign": OpRow("iufc", _sign, ints=lambda a: (a > 0) - (a < 0), complexes=lambda z: z / abs(z)),
    "square": OpRow("iufc", lambda x: x * x),
    "reciprocal": OpRow("fc", lambda x: 1 / x, bound=Bound(0.5, 0.5), truth=lambda mp, x: 1 / x),
    "relu": OpRow("iuf", lambda x: x if x > 0 or math.isnan(x) else 0.0, ints=lambda a: max(a, 0)),
    "floor": OpRow("iuf", _whole(math.floor), ints=operator.pos),
    "ceil": OpRow("iuf", _whole(math.ceil), ints=operator.pos),
    "trunc": OpRow("iuf", _whole(math.trunc), ints=operator.pos),
    "round": OpRow(
        "iufc",
        _round_even,
        ints=operator.pos,
        complexes=lambda z: complex(round(z.real), round(z.imag)),
    ),
    "sqrt": OpRow("fc", math.sqrt, bound=Bound(0.5, 0.5)),
    "cbrt": OpRow(
        "f",
        math.cbrt,
        bound=Bound(3, 1),
        xla=Bound(3, 3),
        truth=lambda mp, x: mp.sign(x) * mp.cbrt(abs(x)),
    ),
    "rsqrt": OpRow(
        "fc",
        lambda x: 1 / math.sqrt(x),
        complexes=lambda z: 1 / cmath.sqrt(z),
        bound=Bound(1.5, 1.5),
        truth=lambda mp, x: 1 / mp.sqrt(x),
    ),
    "exp": OpRow("fc", math.exp, bound=Bound(3, 1), xla=Bound(5, 2)),
    "expm1": OpRow(
        "fc", math.expm1, complexes=lambda z: cmath.exp(z) - 1, bound=Bound(3, 1), xla=Bound(5, 3)
    ),
    "log": OpRow("fc", math.log, bound=Bound(3, 1), xla=Bound(1, 1)),
    "log1p": OpRow(
        "fc", math.log1p, complexes=lambda z: cmath.log(1 + z), bound=Bound(3, 1), xla=Bound(3, 116)
    ),
    "log2": OpRow(
        "fc",
        math.log2,
        complexes=lambda z: cmath.log(z, 2),
        bound=Bound(3, 1),
        xla=Bound(2, 2),
        truth=lambda mp, x: mp.log(x, 2),
    ),
    "log10": OpRow("fc", math.log10, bound=Bound(3, 2), xla=Bound(2, 2)),
    "sin": OpRow("fc", math.sin, bound=Bound(2, 8), xla=Bound(1, 2)),
    "cos": OpRow("fc", math.cos, bound=Bound(2, 8), xla=Bound(1, 8)),
    "tan": OpRow("fc", math.tan, bound=Bound(3, 1), xla=Bound(2, 15)),
    "asin": OpRow("fc", math.asin, bound=Bound(3, 1), xla=Bound(2, 2)),
    "acos": OpRow("fc", math.acos, bound=Bound(3, 1), xla=Bound(2, 1)),
    "atan": OpRow("fc", math.atan, bound=Bound(3, 1), xla=Bound(1, 2)),
    "deg2rad": OpRow(
        "f",
        math.radians,
        bound=Bound(1.5, 1.5),
        xla=Bound(0, 0),
        truth=lambda mp, x: x * mp.pi / 180,
    ),
    "sinh": OpRow("fc", math.sinh, bound=Bound(3, 2), xla=Bound(24, 500)),
    "cosh": OpRow("fc", math.cosh, bound=Bound(3, 2), xla=Bound(24, 500)),
    "tanh": OpRow("fc", math.tanh, bound=Bound(3, 2), xla=Bound(3, 7)),
    "asinh": OpRow("fc", math.asinh, bound=Bound(3, 2)),
    "acosh": OpRow("fc", math.acosh, bound=Bound(3, 2)),
    "atanh": OpRow("fc", math.atanh, bound=Bound(3, 2), xla=Bound(3, 116)),
    "erf": OpRow("f", math.erf, bound=Bound(0.8, 0.8), xla=Bound(3, 1)),
    "sigmoid": OpRow("f", _sigmoid, bound=Bound(3, 2), xla=Bound(2, 2), truth=_true_sigmoid),
    "silu": OpRow(
        "f",
        lambda x: x * _sigmoid(x),
        bound=Bound(4, 3, _tail),
        xla=Bound(3, 3),
        truth=lambda mp, x: x * _true_sigmoid(mp, x),
    ),
    "softplus": OpRow(
        "f",
        lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
        bound=Bound(4, 2),
        xla=Bound(6, 116),
        truth=lambda mp, x: max(x, 0) + mp.log1p(mp.exp(-abs(x))),
    ),
    "gelu": OpRow("f", bound=Bound(0.6, 2), xla=Bound(150, 150), truth=_true_gelu),
    "atan2": OpRow("f", math.atan2, bound=Bound(3, 1), xla=Bound(2, 0.5)),
    "hypot": OpRow("f", math.hypot, bound=Bound(1, 1), xla=Bound(2, 2)),
    "logaddexp": OpRow(
        "f",
        bound=Bound(3, 2, lambda x, y: np.maximum(abs(x), abs(y))),
        xla=Bound(2, 3),
        truth=lambda mp, x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    ),
    "heaviside": OpRow("f", lambda a, b: b if a == 0 else a if a != a else float(a > 0)),
    "copysign": OpRow("f", math.copysign),
    "nextafter": OpRow("f"),
    "is_nan": OpRow("biufc", math.isnan, ints=lambda a: False),
    "is_inf": OpRow("biufc", math.isinf, ints=lambda a: False),
    "is_finite": OpRow("biufc", math.isfinite, ints=lambda a: True),
    "signbit": OpRow("biuf", lambda x: math.copysign(1, x) < 0, ints=lambda a: a < 0),
    "equal": OpRow("biufc", operator.eq),
    "not_equal": OpRow("biufc", operator.ne),
    "less": OpRow("biuf", operator.lt),
    "less_equal": OpRow("biuf", operator.le),
    "greater": OpRow("biuf", operator.gt),
    "greater_equal": OpRow("biuf", operator.ge),
    "logical_and": OpRow("b"),
    "logical_or": OpRow("b"),
    "logical_xor": OpRow("b"),
    "logical_not": OpRow("b"),
    "bitwise_and": OpRow("biu", ints=operator.and_),
    "bitwise_or": OpRow("biu", ints=operator.or_),
    "bitwise_xor": OpRow("biu", ints=operator.xor),
    "bitwise_invert": OpRow("biu", ints=operator.invert),
    "left_shift": OpRow("iu", ints=lambda a, b: a << min(b, 64) if b >= 0 else 0),
    "right_shift": OpRow("iu", ints=lambda a, b: a >> b if b >= 0 else -(a < 0)),
    "clip": OpRow("biuf"),
    "real": OpRow("biufc", operator.pos, complexes=lambda z: z.real),
    "imag": OpRow("biufc", lambda x: 0.0, ints=lambda a: 0, complexes=lambda z: z.imag),
    "conj": OpRow("biufc", operator.pos, complexes=lambda z: z.conjugate()),
    "as_complex": OpRow("f", complex),
}
"""The rows of elementwise ops, in the order of the catalogue."""

OTHERS = frozenset(
    """
    where cast sum numpy_sum prod max min mean var std any all argmax argmin cumulative_sum
    cumulative_prod softmax logsoftmax layer_norm sort argsort searchsorted matmul tensordot
    outer reshape broadcast_to rebind transpose permute squeeze unsqueeze slice flip roll
    pad tile repeat concat stack gather take_along scatter affine_view item slice_update
    index_update index_add input constant full range eye
    shape_of
    """.split()  # noqa: SIM905
)
"""The other ops of the catalogue, each of which has tests of its own."""
