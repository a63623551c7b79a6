"""The audit of large arrays, by blocks of regions, says what that of the whole arrays says."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir.passes import CastReport
from graphir.runtime import record
from graphir.runtime.audit import regions, sweep
from graphir.runtime.audit.blame import Blame

F32 = np.float32


def read_again_later(x: Any, y: Any) -> Any:
    """A rounded value is read by two regions, with a reduction between them."""
    rounded = np.exp(x.astype(np.float64)).astype(F32)
    total = (rounded * y).sum()
    return (rounded + y) * total - rounded.astype(np.float16)


def broadcast(x: Any, y: Any) -> Any:
    row, column = y[0], y[:, :1].astype(np.float16)
    scaled = x * row + column
    return np.sqrt(scaled.astype(np.float16) * column) - row * F32(0.1)


def integers(x: Any, y: Any) -> Any:
    levels = (x * F32(255)).astype(np.uint8)
    wrapped = levels + np.uint8(100)
    far = levels.astype(np.int64) * 10**17 * 3
    return wrapped.astype(np.int16) - levels, far // 7, np.where(levels > 9, wrapped, levels ^ 3)


def losing(x: Any, y: Any) -> Any:
    grown = np.exp(x * F32(200))
    rooted = np.sqrt(y - F32(0.5)) + np.log(x - x)
    small = x * F32(1e-30) * F32(1e-15)
    near = (x + F32(1e8)) - F32(1e8)
    return grown, rooted, small, near, F32(1) - np.cos(x * F32(1e-3))


def summed_in_a_loop(x: Any, y: Any) -> Any:
    total = x
    for _ in range(24):
        total = total + y
    return total, total.astype(np.float16) + np.float16(1)


def of_complex_numbers(x: Any, y: Any) -> Any:
    z = x + np.complex64(1j) * y
    return (np.exp(-z) / z).real, np.abs(z * z + z.imag)


def written_where(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    np.multiply(x, y.astype(np.float64), out=out, where=y > F32(0.5), casting="same_kind")
    out[:, ::2] += 1e-3
    return out * y, np.clip(out, F32(0.2), F32(0.8)) - x.mean(axis=1, keepdims=True)


PROGRAMS = (
    read_again_later,
    broadcast,
    integers,
    losing,
    summed_in_a_loop,
    of_complex_numbers,
    written_where,
)


def audited(program: Callable[..., Any], **settings: Any) -> CastReport:
    x, y = np.random.default_rng(3).uniform(0.1, 1, (2, 60, 50)).astype(F32)
    with np.errstate(all="ignore"):
        return record(program, x, y).audit(**settings)


def figures(report: CastReport) -> dict[Any, Any]:
    """The measurements of each row by its place in the graph, and the shares, rounded."""
    rows = [*report.rows, *report.losses]
    measured = {(x.kind, x.symbol.index): x.measured for x in rows if x.measured is not None}
    return {
        place: (
            m.changed,
            m.overflowed,
            m.underflowed,
            m.nan_made,
            m.worst and [f"{x:.9g}" for x in m.worst],
            f"{m.relative:.9g}",
            f"{m.weight:.6f}",
        )
        for place, m in measured.items()
    }


def shares(report: CastReport) -> dict[Any, Any]:
    rows = [*report.rows, *report.losses]
    return {(row.kind, row.symbol.index): row.shares for row in rows if row.shares is not None}


@pytest.mark.parametrize("settings", [{}, {"memory": 40_000}, {"blame": False}], ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_blocks_of_regions_make_no_difference(
    program: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Blame, "_measure", lambda *_: None)
    whole = audited(program)
    monkeypatch.setattr(regions, "LEAST", 1000)
    monkeypatch.setattr(regions, "SMALL", 0, raising=False)
    monkeypatch.setattr(sweep, "BLOCK", 700)
    by_blocks = audited(program, **settings)
    assert whole.graph.symbols
    if "blame" in settings:
        expected = figures(whole)
        for place, row in figures(by_blocks).items():
            assert row == expected[place]
        return
    assert figures(by_blocks) == figures(whole)
    expected = shares(whole)
    assert shares(by_blocks).keys() == expected.keys()
    for place, values in shares(by_blocks).items():
        assert values == pytest.approx(expected[place], rel=1e-6, abs=1e-9)
    for one, other in zip(by_blocks.outputs, whole.outputs, strict=True):
        assert (one.differing, one.broken) == (other.differing, other.broken)
        assert one.norm == pytest.approx(other.norm)
        assert one.rounding == pytest.approx(other.rounding, abs=1e-9)


def test_a_run_with_a_loss_goes_by_blocks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares that a run of its own measures, for large errors, are those of whole arrays."""
    whole = audited(broadcast)
    monkeypatch.setattr(regions, "LEAST", 1000)
    monkeypatch.setattr(regions, "SMALL", 0, raising=False)
    monkeypatch.setattr(sweep, "BLOCK", 700)
    expected, by_blocks = shares(whole), shares(audited(broadcast))
    assert any(expected.values())
    for place, values in by_blocks.items():
        assert values == pytest.approx(expected[place], rel=1e-6, abs=1e-9)


def normalized(x: Any, y: Any) -> Any:
    for _ in range(8):
        centred = x - x.mean()
        x = centred / np.sqrt((centred * centred).mean()) * y
    return x


def test_an_audit_frees_what_it_does_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "SMALL", 0, raising=False)
    x, y = np.random.default_rng(3).uniform(0.1, 1, (2, 1 << 18)).astype(F32)
    recording = record(normalized, x, y)
    tracemalloc.start()
    try:
        report = recording.audit()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not report.rows
    assert peak < 16 * 8 * x.size, peak / 8 / x.size
