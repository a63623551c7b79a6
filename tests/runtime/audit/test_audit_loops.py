"""Loops: many casts of one place in the program, blamed and told together."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from graphir import Graph
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.text import report_details
from graphir.runtime import audit, record
from graphir.runtime.audit import blame
from graphir.runtime.audit.subject import MANY
from tests.support.reports import program
from tests.support.tables import every, sampled
from tests.support.work import count_work


def stepped(times: int) -> Graph:
    """A float16 value that two loops round: the first from float32, the second from float64."""
    g = Graph("loops", rules="max")
    x, y, z = (g.input(d, ("n",)) for d in ("float16", "float32", "float64"))
    for _ in range(times):
        x = (x.cast("float32") + y).cast("float16")
    for _ in range(times):
        x = (x.cast("float64") - z).cast("float16")
    g.output(x)
    return g


def run(times: int) -> list[tuple[int, float]]:
    """The line of each lossy cast, counted from the first, and its share."""
    rng = np.random.default_rng(3)
    given = (
        np.zeros(500, np.float16),
        rng.uniform(0.001, 0.002, 500).astype(np.float32),
        rng.uniform(0.0001, 0.0002, 500),
    )
    report = audit(stepped(times), *given).only(exact=False).in_order()
    return [(row.location.line - report[0].location.line, row.shares[0]) for row in report]


@every("times", [3, MANY // 2 + 1])
def test_the_shares_of_a_place_are_those_of_its_casts(times: int) -> None:
    found = run(times)
    assert [line for line, _ in found] == [0] * times + [2] * times
    assert sum(share for _, share in found) == pytest.approx(1, abs=0.02)


def test_a_share_of_a_loop_is_what_all_its_casts_do(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, swept = run(MANY), run_of_sweep(monkeypatch, MANY)
    for at in (0, 2):
        both = [[share for line, share in shares if line == at] for shares in (measured, swept)]
        assert sum(both[0]) == pytest.approx(sum(both[1]), abs=0.02)
        assert len(set(both[0])) > 10  # each cast has a share of its own


def run_of_sweep(monkeypatch: pytest.MonkeyPatch, times: int) -> list[tuple[int, float]]:
    """The shares by the sweep alone, which no run replaces."""
    monkeypatch.setattr(blame, "LEAST", 0)
    monkeypatch.setattr(blame, "PART", 0)
    return run(times)


def test_a_place_has_one_line_that_counts_its_casts() -> None:
    def scaled(x: np.ndarray) -> np.ndarray:
        for _ in range(7):
            x = x * np.float64(0.9)
        return x.astype(np.float32)

    report = record(scaled, np.ones(4, np.float32)).audit()
    (widened,) = report.only("implicit")
    assert widened.exact  # the first step alone widens
    g = stepped(7)
    report = audit(g, np.zeros(2, np.float16), np.ones(2, np.float32), np.ones(2))
    lines = str(report).splitlines()
    assert lines[2].endswith("times")
    assert [line.split()[-1] for line in lines[3:]] == ["7"] * 4
    assert report_details(report).count("= times     7") == 4
    for write in REPORT_FORMATS.values():
        assert write(report)


def written(lines: int) -> Graph:
    """As many lines, each of which rounds a float64 value."""
    line = "    x = (x * (1 + 2.0**-{})).cast('float32').cast('float64')\n"
    body = "".join(line.format(20 - i % 19) for i in range(lines))
    text = f"def build(x):\n{body}    return x\n"
    g = Graph("written", rules="max")
    g.output(program(text, f"written_{lines}.py")["build"](g.input("float64", (3,))))
    return g


VALUES = np.array([0.1, 0.7, 1.3])


def test_shares_that_nobody_measured_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflowing(x: np.ndarray) -> np.ndarray:
        for i in range(12):
            x = (x * np.float32(1 + 2.0**-i)).astype(np.float16).astype(np.float32)
        with np.errstate(over="ignore"):
            return np.exp(x * np.float32(16))

    recording = record(overflowing, np.float32([0.1, 0.7, 1.3]))
    full = recording.audit().in_order()
    assert all(row.shares is not None for row in full)
    work = 100 * blame.SYMBOL  # of some runs, since an infinite error has no adjoint
    monkeypatch.setattr(blame, "LEAST", work)
    monkeypatch.setattr(blame, "PART", 0)
    some = recording.audit().in_order()
    pairs = list(zip(full, some, strict=True))
    assert all(row.shares in (of_all.shares, None) for of_all, row in pairs)
    known = [row for row in some if not row.exact and row.shares is not None]
    unknown = [row for row in some if row.shares is None]
    assert known and unknown and all(row.measured.changed for row in unknown)
    least = min(row.measured.relative for row in known)
    assert all(row.measured.relative <= least for row in unknown)
    for name, write in REPORT_FORMATS.items():
        document = write(some)
        if name == "json":
            shares = [cast["shares"] for cast in json.loads(document)["casts"]]
            assert shares.count(None) == sum(site.shares is None for site in some.sites)
        elif name in ("text", "details", "markdown", "html"):  # findings have no shares
            assert "unknown" in document and "unknown" not in write(full), name


@pytest.mark.exhaustive
def test_the_work_of_many_places_is_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "LEAST", 1000 * blame.SYMBOL)
    graphs = [written(n) for n in (100, 200, 400, 800)]
    works = [count_work(lambda g=g: audit(g, VALUES)) for g in graphs][1:]
    for less, more in pairwise(works):
        assert all(b <= 2.2 * a for a, b in zip(less, more, strict=True)), works


def odometer(steps: int) -> np.ndarray:
    metres = np.full(3, 655_360.0, np.float32)
    for _ in range(steps):
        metres += np.float32(0.01)
    return metres


def test_the_losses_of_a_loop_share_one_walk_of_the_graph() -> None:
    report = record(odometer, 100).audit()
    assert len(report.losses) == 100
    assert len({id(row.uses) for row in report.losses}) == 1


def scalar_total(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    total = x[0] * 0
    for i in range(len(x)):
        difference = x[i] - y[i]
        total = total + difference * difference
    return total


def pairs_near(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    count = np.zeros(len(x), int)
    for i in range(len(x)):
        for j in range(len(x)):
            horizontal, vertical = x[i] - x[j], y[i] - y[j]
            if np.sqrt(horizontal * horizontal + vertical * vertical) < 1:
                count[i] += 1
    return count


@every(("program", "size", "most"), [(scalar_total, 100, 450), (pairs_near, 12, 250)])
def test_a_symbol_of_a_scalar_loop_costs_few_calls(program, size: int, most: int) -> None:
    inputs = np.random.default_rng(0).normal(size=(2, size)).astype(np.float32)
    recording = record(program, *inputs)
    recording.audit()  # fills the caches
    assert count_work(recording.audit).calls / len(recording.graph.symbols) < most


def narrowed(x: np.ndarray) -> np.ndarray:
    total = speed = x[:3].astype(np.float32)
    for _ in x:
        speed = speed + (np.float32(1) - speed) * 0.05
        total = total + speed * 0.5
    return total


def test_the_audit_of_a_loop_of_twice_the_rounds_makes_twice_the_calls() -> None:
    recordings = [record(narrowed, np.linspace(0, 1, rounds)) for rounds in (60, 120, 240)]
    _, once, twice = (count_work(recording.audit).calls for recording in recordings)
    assert twice < 2 * once


@sampled(3)
@every("dtype", ["float16", "float32", "complex64"])
def test_roundings_of_scalars_are_measured_as_those_of_arrays(dtype: str) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 100)).astype(dtype)
    losses = []
    for inputs in ((x, y), (np.stack([x, x], 1), np.stack([y, y], 1))):
        report = record(scalar_total, *inputs).audit()
        losses.append([row for row in report.losses if row.kind == "accumulation"])
    assert len(losses[0]) == len(losses[1]) > 50
    for scalar, array in zip(*losses, strict=True):
        assert (scalar.measured.changed, array.measured.changed) == (1, 2)
        for fact in ("relative", "worst", "operands", "weight"):
            assert getattr(scalar.measured, fact) == getattr(array.measured, fact)


@every("shape", [(), (3,)])
def test_a_loop_on_nan_accumulates_nothing(shape: tuple[int, ...]) -> None:
    def total(x: np.ndarray) -> np.ndarray:
        result = x[0] * 0
        for i in range(40):
            result = result + x[i]
        return result

    report = record(total, np.full((40, *shape), np.nan, np.float32)).audit()
    assert not report.losses
