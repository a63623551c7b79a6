"""What each target refuses: the table is what is kept, and each reason is the engine's own."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graphir import ops
from tests.runtime.targets.target_refusals import REFUSALS, Refusal
from tests.runtime.targets.target_table import TARGETS, golden, installed, lettered, rows, verdicts
from tests.support.strategies import STRONG
from tests.support.tables import every


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", TARGETS)
def test_the_table_is_what_is_kept(target: str) -> None:
    if not installed(target):
        pytest.skip(f"{TARGETS[target].package} is not installed: the target says nothing")
    table, kept = lettered(verdicts(target)), golden()[target]
    for name in table["rows"].keys() - kept["rows"].keys():  # the rows of its primitives say it
        assert ops.find(name.split()[0]).decomposition, name
        del table["rows"][name]
    assert table == kept


@every("row", REFUSALS)
def test_what_is_impossible_is_refused_by_the_engine(row: Refusal) -> None:
    if not installed(row.target):
        pytest.skip(f"{TARGETS[row.target].package} is not installed: nothing refuses it")
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        row.attempt()


def test_every_reason_is_one_that_the_engine_has() -> None:
    for target, table in golden().items():
        if target == "dtypes":
            continue
        rows = [row.reason for row in REFUSALS if row.target == target]
        for reason in table["impossible"].values():
            has_no_row = reason.endswith("has no such op")  # the target's own reason
            assert has_no_row or any(re.fullmatch(row, reason) for row in rows), reason
        for row in rows:
            assert any(re.fullmatch(row, reason) for reason in table["impossible"].values()), row


def test_every_op_and_every_dtype_is_asked_about() -> None:
    table: dict[str, Any] = golden()
    assert table.pop("dtypes") == " ".join(map(str, STRONG))
    assert {*table} == {*TARGETS}
    assert {row.op.name for row in rows()} == {*ops.CATALOGUE, *ops.CONTROL} - {
        "input",
        "call",
        "part",
    }
    for row in rows():
        assert any(row.graph(dtype) is not None for dtype in STRONG), row.name
