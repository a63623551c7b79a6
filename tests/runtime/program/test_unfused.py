"""`explain` on large arrays that pass from step to step through memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.numpy_api.trace import trace
from graphir.runtime import Program
from tests.support.tables import every

X = np.ones((2000, 400), np.float32)
CASES: dict[str, Callable[[Any], Any]] = {
    "matmul computes whole arrays": lambda x: np.exp(x) @ x.T,
    "a row is longer than a block": lambda x: (lambda y: y / y.sum())(np.exp(x)),
    "the rows of .* are not those of": lambda x: np.tanh(np.exp(x).T).sum(axis=1),
}


@every("reason", CASES)
def test_it_names_the_array_and_the_reason(reason: str) -> None:
    program = Program(trace(CASES[reason], X, rules="numpy").graph, native="off")
    lines = [line for line in str(program.explain(X)).splitlines() if "from memory" in line]
    assert re.search(rf"step \d reads 3,200,000 B of step \d from memory: {reason}", lines[0])


def test_small_arrays_and_fused_steps_have_no_line() -> None:
    def softmax(x: Any) -> Any:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    for function, array in ((softmax, X), (CASES["matmul computes whole arrays"], X[:9])):
        program = Program(trace(function, array, rules="numpy").graph, native="off")
        assert "from memory" not in str(program.explain(array))
