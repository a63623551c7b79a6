"""The questions put to MAX, and the golden file of its answers, which needs no MAX to be read.

A question is an op's name and its operands. Questions come by section and op, in rows; an answer is
a letter, the place of the dtype in DTYPES, or "-" where MAX's graph builder raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from string import ascii_lowercase
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from graphir import DType
from tests import GOLDEN
from tests.peers import CALLS

TABLE = GOLDEN / "max_ops.json"
DTYPES = tuple(
    DType(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "bfloat16"),
        *("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e8m0fnu"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    )
)
"""The 21 dtypes of MAX 26.7."""

ALONE = (
    *("negative", "abs", "relu", "floor", "ceil", "trunc", "round", "sqrt", "rsqrt", "exp"),
    *("log", "log1p", "sin", "cos", "acos", "tanh", "atanh", "erf", "sigmoid", "silu", "gelu"),
    *("is_nan", "is_inf", "logical_not", "bitwise_invert", "sum", "prod", "max", "min", "mean"),
    *("var", "std", "argmax", "argmin", "argsort", "cumulative_sum", "softmax", "logsoftmax"),
    *("reshape", "broadcast_to", "rebind", "transpose", "permute", "squeeze", "unsqueeze"),
    *("slice", "pad", "tile", "repeat", "shape_of"),
)
ELEMENTWISE = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
    *("maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater"),
    *("greater_equal", "logical_and", "logical_or", "logical_xor"),
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
)
JOINED = (*ELEMENTWISE, "where", "outer", "matmul", "concat", "stack", "scatter", "gather")
MEASURED = frozenset({*ALONE, *JOINED, "layer_norm"})
"""The ops of the catalogue that have operands and that MAX has, but for `cast`."""

LITERALS: tuple[Any, ...] = (
    *(True, False, 0, 1, -1, 2, 3, 6, 7, 8, 28, 29, 100, 127, 128, 255, 256, 257, 240, 241),
    *(448, 449, 2048, 2049, 57344, 57345, 65535, 65536, 70000, 72089, 72090, 2**17, 2**24),
    *(2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63),
    *(2**64 - 1, 2**64, 2**127, 2**127 + 1, 2**200, -128, -129, -(2**31), -(2**53) - 1),
    *(-(2**63), -(2**63) - 1, -72089, -72090),
    *(1.0, 0.1, -0.0, 65520.0, 1e40, 1e300, float("inf"), float("nan"), 1j),
)
NUMBERS: tuple[Any, ...] = (
    *(np.dtype(name).type(1) for name in ("bool", "i1", "i4", "i8", "u1", "u8")),
    *(np.float16(1), np.float32(0.1), np.float64(1e40), np.complex64(1), ml_dtypes.bfloat16(1)),
    *(np.int64(-1), np.int64(300), np.int64(2**24 + 1), np.uint64(2**63), np.float64("nan")),
)
"""NumPy scalars, which become 0-d arrays and arrays too."""

Question: TypeAlias = "tuple[str, tuple[Any, ...]]"
Rows: TypeAlias = "list[list[Question]]"


def _alone(op: str) -> Rows:
    shapes = ((2,),) if op == "argsort" else CALLS[op].shapes
    return [[(op, ((dtype, shapes[0]),)) for dtype in DTYPES]]


def _pairs(op: str) -> Rows:
    """All pairs of the operands whose dtypes vary; of gather, the data and the indices."""
    shapes = CALLS[op].shapes
    fixed = {} if op == "gather" else dict(CALLS[op].fixed)
    first, second = (i for i in range(len(shapes)) if i not in fixed)
    return [
        [
            (op, tuple(({**fixed, first: a, second: b}[i], s) for i, s in enumerate(shapes)))
            for b in DTYPES
        ]
        for a in DTYPES
    ]


def _beside(op: str, dtype: DType, other: Any, first: bool = False) -> Question:
    """An op of a tensor and something else, which comes last, or first."""
    shape = (2,) if op == "outer" else () if op == "stack" else (2, 2)
    pair = (other, (dtype, shape)) if first else ((dtype, shape), other)
    condition = ((DType.bool, (2, 2)),) if op == "where" else ()
    indices = ((DType.int64, (2, 2)),) if op == "scatter" else ()
    return op, (*condition, *pair, *indices)


def _literals(op: str) -> Rows:
    both = product((False, True), LITERALS)
    asked = [(value, first) for first, value in both]
    return [[_beside(op, dtype, value, first) for value, first in asked] for dtype in DTYPES]


def _arrays(op: str) -> Rows:
    """NumPy scalars, 0-d arrays and arrays, as the last operand."""
    shape = (2,) if op == "outer" else () if op == "stack" else (2, 2)
    given = [
        *NUMBERS,
        *(np.asarray(number) for number in NUMBERS),
        *(np.full(shape, number) for number in NUMBERS),
    ]
    return [[_beside(op, dtype, value) for value in given] for dtype in DTYPES]


def _ranks(op: str) -> Rows:
    """A 0-d operand beside one of two axes, in both orders, and two of them."""
    condition = ((DType.bool, (2, 2)),) if op == "where" else ()
    shapes = (((), (2, 2)), ((2, 2), ()), ((), ()))
    return [
        [(op, (*condition, *zip((a, b), pair, strict=True))) for b in DTYPES for pair in shapes]
        for a in DTYPES
    ]


def _conditions(op: str) -> Rows:
    """The dtype of where's condition and of scatter's indices."""
    place, shape = (0 if op == "where" else 2), (2, 2)
    rest = [(DType.float32, shape)] * 2
    return [[(op, (*rest[:place], (dtype, shape), *rest[place:])) for dtype in DTYPES]]


def _normalized(op: str) -> Rows:
    """Scale and shift of two dtypes beside x of a third."""
    return [
        [(op, ((x, (2, 2)), (scale, (2,)), (shift, (2,)))) for shift in DTYPES]
        for x, scale in product(DTYPES, repeat=2)
    ]


_SECTIONS: dict[str, tuple[Callable[[str], Rows], Sequence[str]]] = {
    "alone": (_alone, ALONE),
    "pairs": (_pairs, JOINED),
    "literals": (_literals, (*ELEMENTWISE, "where", "stack")),
    "arrays": (_arrays, ("add", "divide", "equal", "less", "where", "outer", "matmul", "stack")),
    "ranks": (_ranks, ("add", "divide", "equal", "where", "maximum", "logical_and")),
    "conditions": (_conditions, ("where", "scatter")),
    "layer_norm": (_normalized, ("layer_norm",)),
}
SECTIONS = tuple(_SECTIONS)


def questions(section: str) -> Iterator[tuple[str, Rows]]:
    """Each op of a section and its rows of questions."""
    ask, names = _SECTIONS[section]
    return ((op, ask(op)) for op in names)


def letter(answer: DType | None) -> str:
    """An answer as one letter."""
    return "-" if answer is None else ascii_lowercase[DTYPES.index(answer)]


def measurement(version: str, result: Callable[..., DType | None]) -> dict[str, Any]:
    """The golden file: by section, each table of answers once, under the ops that share it."""
    sections: dict[str, dict[str, list[str]]] = {}
    for section in SECTIONS:
        tables: dict[tuple[str, ...], list[str]] = {}
        for op, rows in questions(section):
            answers = tuple("".join(letter(result(op, *of)) for op, of in row) for row in rows)
            tables.setdefault(answers, []).append(op)
        sections[section] = {" ".join(names): list(table) for table, names in tables.items()}
    return {"version": version, "dtypes": " ".join(map(str, DTYPES)), **sections}


def golden() -> dict[str, Any]:
    """The answers of MAX, as they were measured."""
    return json.loads(TABLE.read_text())


def golden_rows(section: str, op: str) -> list[str]:
    """The rows of answers for one op of a section."""
    return next(rows for names, rows in golden()[section].items() if op in names.split())
