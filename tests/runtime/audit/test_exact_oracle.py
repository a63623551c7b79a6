"""The worst line that an audit names, against an oracle in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from graphir.passes import CastReport
from graphir.runtime import record
from graphir.runtime.audit import blame, regions

pytest.importorskip("mpmath")
from tests.runtime.audit.exact_oracle import LINEAR, Drawn, drawn, line_of
from tests.support.tables import every

PASSED_ON = ("cancellation", "invalid")
"""Losses whose error is that of their operands."""


def worst_line(report: CastReport) -> int:
    """The line whose rows explain most of the output's error; 0 without one."""
    shares: dict[int, float] = {}
    for site in report.sites:
        if site.row.kind not in PASSED_ON and site.shares:
            line = site.row.location.line
            shares[line] = shares.get(line, 0.0) + site.shares[0]
    return max(shares, key=lambda line: abs(shares[line]), default=0)


def agrees(program: Drawn, name: str) -> bool:
    """Whether the audit names the line that the oracle finds the worst; True without errors."""
    changes = program.changes()
    report = record(program.function(f"{name}.py"), *program.inputs).audit()
    oracle = line_of(int(np.argmax(changes)))
    return not any(changes) or worst_line(report) == oracle


@every("seed", range(12))
def test_the_worst_line_is_that_of_exact_arithmetic(seed: int) -> None:
    assert agrees(drawn(seed), f"drawn_{seed}")


@every("seed", range(40))
def test_the_shares_of_a_linear_program_sum_to_one(seed: int) -> None:
    program = drawn(seed, LINEAR)
    report = record(program.function(f"linear_{seed}.py"), *program.inputs).audit()
    (error,) = report.outputs
    sites = [x for x in report.sites if x.row.kind not in PASSED_ON]
    shares = {row.symbol.index: row.shares[0] for x in sites for row in x.casts if row.shares}
    assert sum(shares.values()) + (error.rounding or 0.0) == pytest.approx(1, abs=1e-9)


@pytest.mark.exhaustive
def test_the_worst_line_of_200_programs() -> None:
    programs = [drawn(seed) for seed in range(1000, 1200)]
    wrong = [i for i, program in enumerate(programs) if not agrees(program, f"many_{i}")]
    assert len(wrong) <= 10, wrong


def test_the_shares_of_large_arrays_are_those_of_small_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of large arrays, the sweep computes the values of elementwise steps again by blocks."""

    def mixed(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = x.astype(np.float16) * np.float16(3)
        total = half - half.mean() + y * np.float32(0.3)
        return np.exp(-total.astype(np.float32)), (total * y).sum()

    generator = np.random.default_rng(4)
    x, y = generator.uniform(0.1, 1, (2, 3, 5000)).astype(np.float32)
    whole = record(mixed, x, y).audit()
    monkeypatch.setattr(regions, "LEAST", 1000)
    monkeypatch.setattr(blame, "LEAST", 0)
    by_blocks = record(mixed, x, y).audit()
    assert whole.outputs[0].norm == by_blocks.outputs[0].norm
    for one, other in zip(whole, by_blocks, strict=True):
        assert one.shares == pytest.approx(other.shares, abs=1e-3)
    for one, other in zip(whole.outputs, by_blocks.outputs, strict=True):
        assert one.rounding == pytest.approx(other.rounding, abs=1e-9)
