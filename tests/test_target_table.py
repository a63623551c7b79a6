"""What each target does with every op at every dtype: the table is what is kept, and it is true."""

from __future__ import annotations

from typing import Any

import pytest

from graphir import ops
from tests.strategies import STRONG
from tests.target_table import TARGETS, golden, installed, lettered, rows, verdicts


@pytest.mark.parametrize("target", TARGETS)
def test_the_table_is_what_is_kept(target: str) -> None:
    if not installed(target):
        pytest.skip(f"{TARGETS[target].package} is not installed: the target says nothing")
    found, kept = lettered(verdicts(target)), golden()[target]
    assert found["impossible"] == kept["impossible"]
    for name, line in found["rows"].items():
        assert line == kept["rows"].get(name), f"{name}; python -m tests.target_table"
    assert [*found["rows"]] == [*kept["rows"]]


def test_every_op_and_every_dtype_is_asked_about() -> None:
    table: dict[str, Any] = golden()
    assert table.pop("dtypes") == " ".join(map(str, STRONG))
    assert {*table} == {*TARGETS}
    assert {row.op.name for row in rows()} == {*ops.CATALOGUE} - {"input"}
    for name, line in table["python"]["rows"].items():
        assert line.strip("-"), name
