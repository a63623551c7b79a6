"""The names that type checkers know are those that graphir knows when it runs."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import get_args

import numpy as np
import pytest

from graphir import DType, GraphError, Lattice, PromotionRules, register, rules
from graphir.hints import CastKindName, DTypeName, NumPyCode
from graphir.ir.symbol import numpy_code
from graphir.passes import cast_kind
from graphir.passes.analysis.policies.patterns import GROUPS, LOSSES
from graphir.promotion import RuleSetName
from tests.support.tables import every


def test_the_names_of_rule_sets() -> None:
    code = "import graphir; print(*(each.name for each in graphir.rule_sets()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [*get_args(RuleSetName)]  # a process that registers none


def test_the_names_of_dtypes() -> None:
    names = {name for dtype in DType for name in (str(dtype), *dtype.aliases)}
    for dtype in DType:  # short names that NumPy does not read as another dtype
        with suppress(GraphError):
            names |= {dtype.short} if DType(dtype.short) is dtype else set()
    assert {*get_args(DTypeName)} == names
    assert len(get_args(DTypeName)) == len(names)


def test_the_kinds_of_casts() -> None:
    dtypes = dict.fromkeys([*GROUPS, *map(str, DType)])
    sides = [f"{way}:{side}" for way in ("to", "from") for side in dtypes]
    pairs = [f"{source}->{target}" for source in GROUPS for target in GROUPS]
    assert get_args(CastKindName) == (*LOSSES, *sides, *pairs)
    assert all(cast_kind(name) == name for name in get_args(CastKindName))


@every("code", get_args(NumPyCode))
def test_codes_of_numpy(code: str) -> None:
    assert DType(numpy_code(code)).storage == np.dtype(code)


def test_a_rule_set_by_any_text() -> None:
    own = register(PromotionRules("found_by_text", "", Lattice("o", {"int8": ["int16"]})))
    assert PromotionRules.find("found_by_text") is own
    assert PromotionRules.find("max") is rules("max")
    with pytest.raises(GraphError, match="use numpy"):
        PromotionRules.find("numpi")
