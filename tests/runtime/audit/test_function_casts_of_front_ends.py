"""The casts of NumPy's functions have one origin under trace and in recordings: the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import TensorType, trace
from graphir.passes import cast_report
from graphir.runtime import record
from tests.support.tables import every

X = np.arange(8, dtype=np.int32)
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "cov": (np.cov, "m of np.cov"),
    "corrcoef": (lambda x: np.corrcoef(x, x), "of np.corrcoef"),
    "norm": (lambda x: np.linalg.norm(x), "x of np.linalg.norm"),
    "convolve": (lambda x: np.convolve(x, np.ones(3)), "a of np.convolve"),
}


@every("name", FUNCTIONS)
def test_a_functions_own_casts_are_implicit_in_each_front_end(name: str) -> None:
    function, operand = FUNCTIONS[name]
    graph = trace(function, TensorType("int32", X.shape), rules="numpy").graph
    for report in (cast_report(graph), record(function, X).report()):
        casts = [row for row in report if row.kind != "literal"]
        assert casts and all(row.kind == "implicit" for row in casts), report
        assert operand in str(report)


def test_casts_of_the_users_functions_stay_explicit() -> None:
    def rounded(row: Any) -> Any:
        return row.astype(np.float16)

    def program(x: Any) -> Any:
        return np.apply_along_axis(rounded, 0, x)

    assert "explicit" in {row.kind for row in record(program, X).report()}
