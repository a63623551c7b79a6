"""The special cases of the standard's text: signed zeros, infinities, NaN, row by row."""

from __future__ import annotations

import cmath
import json
import math
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir.runtime import array_api as xp
from tests import GOLDEN
from tests.support.tables import every

TABLE = json.loads((GOLDEN / "array_api_special_cases.json").read_text(encoding="utf-8"))

INF, NAN = math.inf, math.nan
POSITIVE = (0.25, 0.5, 1.0, 2.0, 3.0, 2.5, 1e3, 1e-30)
FINITE = (*POSITIVE, *(-x for x in POSITIVE), 0.0, -0.0)
ALL = (*FINITE, INF, -INF, NAN)


def is_zero(x: float, sign: float) -> bool:
    return x == 0 and math.copysign(1, x) == sign


CONDITIONS: dict[str, Any] = {
    "nan": math.isnan,
    "≠nan": lambda x: not math.isnan(x),
    "+0": lambda x: is_zero(x, 1),
    "-0": lambda x: is_zero(x, -1),
    "±0": lambda x: x == 0,
    "≠0": lambda x: x != 0,  # of NaN too, as the text has it
    "1": lambda x: x == 1,
    "≠1": lambda x: x != 1,
    "-1": lambda x: x == -1,
    "+inf": lambda x: x == INF,
    "-inf": lambda x: x == -INF,
    "±inf": math.isinf,
    ">0": lambda x: x > 0,
    "<0": lambda x: x < 0,
    ">1": lambda x: x > 1,
    "<1": lambda x: x < 1,
    "<-1": lambda x: x < -1,
    "|x|>1": lambda x: abs(x) > 1,
    "|x|=1": lambda x: abs(x) == 1,
    "|x|<1": lambda x: abs(x) < 1,
    "finite": math.isfinite,
    "finite >0": lambda x: math.isfinite(x) and x > 0,
    "finite <0": lambda x: math.isfinite(x) and x < 0,
    "finite ≠0": lambda x: math.isfinite(x) and x != 0,
    "finite|nan": lambda x: not math.isinf(x),
    "any": lambda x: True,
    "whole": lambda x: math.isfinite(x) and x == math.floor(x),
    "fraction": lambda x: math.isfinite(x) and x != math.floor(x),
    "odd": lambda x: math.isfinite(x) and x % 2 == 1,
    "not odd": lambda x: not (math.isfinite(x) and x % 2 == 1),
}
ROWS = [
    pytest.param(name, *row[:2], row[2:], id=f"{name} {' '.join(row[0].values())}")
    for kind in ("real", "complex")
    for name, rows in TABLE[kind].items()
    for row in rows
]
OTHERWISE: dict[tuple[str, str, str], Any] = {
    ("sqrt", "-inf", "finite >0"): ["+0", "+inf"],
    ("sqrt", "+inf", "finite >0"): ["+inf", "+0"],
    ("sqrt", "nan", "any"): None,
    ("tanh", "+inf", "finite >0"): ["1", "±0"],
}
"""Rows of complex numbers where NumPy follows C99 (annex G.6): it has the first two the other way
round, sqrt of NaN + infinity j as the text says two rows before, and 0 * sin(2b) in tanh."""

TRUTHS = {"true": True, "false": False}
Operands = dict[str, float]


def combinations(conditions: dict[str, str]) -> list[Operands]:
    """All operands that meet the conditions; one that the row is silent of may be anything."""
    both = next((pair for pair in (("re", "im"), ("x1", "x2")) if {*pair} & {*conditions}), ("x",))
    sides = [
        [x for x in ALL if all(CONDITIONS[c](x) for c in conditions.get(one, "any").split(" & "))]
        for one in both
    ]
    return [dict(zip(both, found, strict=True)) for found in product(*sides)]


def results(name: str, given: list[Operands], kind: str) -> list[Any]:
    """What the function gives, all operands in one call."""
    if "re" in given[0]:
        arrays = [[complex(one["re"], one["im"]) for one in given]]
    else:
        arrays = [[one[side] for one in given] for side in given[0]]
    dtype = getattr(xp, kind)
    found = getattr(xp, name)(*[xp.asarray(array, dtype=dtype) for array in arrays])
    return np.asarray(found).tolist()


def number(text: str) -> float:
    """A number as the table has it: +0, 1, -inf, 3π/4."""
    sign, digits, unit, below = re.fullmatch(r"([+-]?)(\d*)(π|inf|nan)?(?:/(\d))?", text).groups()
    unit = {None: 1.0, "π": math.pi, "inf": INF, "nan": NAN}[unit]
    return float(f"{sign}1") * float(digits or 1) * unit / float(below or 1)


def wanted(result: Any, given: Operands) -> Any:
    """The value that a result means for operands; parts whose sign is open stay text."""
    if isinstance(result, list):
        return [one if "±" in one else number(one) for one in result]
    if result in TRUTHS:
        return TRUTHS[result]
    if result == "±inf by signs":
        return INF * math.prod(math.copysign(1, x) for x in given.values())
    if "cis" in result:
        scale, turn = number(result.split(" ")[0]), cmath.rect(1, given["im"])
        return [scale * turn.real - ("- 1.0" in result), scale * turn.imag]
    name = result.strip("-|")
    if name not in given:
        return number(result)
    value = abs(given[name]) if "|" in result else given[name]
    return -value if result.startswith("-") else value


def agrees(found: Any, meant: Any) -> bool:
    """Whether a value is what is meant, with the sign of its zeros where that is not open."""
    if isinstance(meant, list):
        return agrees(found.real, meant[0]) and agrees(found.imag, meant[1])
    if isinstance(meant, str):
        return agrees(abs(found), number(meant[1:]))
    if isinstance(meant, bool) or isinstance(found, bool):
        return found is meant
    if math.isnan(meant):
        return math.isnan(found)
    close = found == meant or math.isclose(found, meant, rel_tol=1e-6)
    return close and math.copysign(1, found) == math.copysign(1, meant)


@every(("name", "conditions", "result", "others"), ROWS)
def test_a_special_case(name: str, conditions: Operands, result: Any, others: list[str]):
    if name == "acosh" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy 2.0 has other special cases of acosh")
    given = combinations(conditions)
    result = OTHERWISE.get((name, *conditions.values()), result)
    if result is None:
        result, given = ["nan", "nan"], [one for one in given if not math.isinf(one["im"])]
    assert given
    kinds = ("complex64", "complex128") if "re" in given[0] else ("float32", "float64")
    for kind in kinds:
        for one, found in zip(given, results(name, given, kind), strict=True):
            allowed = [wanted(each, one) for each in (result, *others)]
            assert any(agrees(found, meant) for meant in allowed), (kind, one, found, allowed)
