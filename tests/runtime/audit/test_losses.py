"""Each step of arithmetic that lost values has a row: its kind, count, worst element and share."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from graphir import DType
from graphir.passes import CastReport
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.json_ import schema
from graphir.runtime import record
from tests.runtime.audit import losses
from tests.support.tables import every

RNG = np.random.default_rng(19)


def audited(function: Any, *arrays: Any) -> CastReport:
    with np.errstate(all="ignore"):
        return record(function, *arrays).audit()


def first(report: CastReport) -> Any:
    return report.sites[0]


CASES = (
    (losses.brightened, np.array([[5, 155, 156, 255]], np.uint8), "wrap", 2, (156, 100), (256, 0)),
    (losses.scaled_peaks, np.array([[1, 2], [110, 3]], np.int16), "wrap", 1, (110, 300), 33000),
    (losses.packed, np.array([0, 3, 255], np.uint8), "wrap", 2, (3, 16), (3 * 2**16, 0)),
    (losses.energies, np.array([1, 100], np.float32), "overflow", 1, (100.0,), np.exp(100.0)),
    (losses.hypotenuse, np.array([1, 3], np.float32), "invalid", 1, (-3.0,), None),
    (losses.moved, np.array([2.0**24, 1], np.float32), "absorption", 1, (2.0**24, 1), 2.0**24 + 1),
)


@every(("function", "x", "kind", "count", "operands", "worst"), CASES)
def test_a_lossy_step_has_a_row(function, x, kind, count, operands, worst) -> None:
    report = audited(function, x)
    (row,) = report.losses
    measured = row.measured
    assert (row.kind, measured.changed, measured.operands) == (kind, count, operands)
    if isinstance(worst, tuple):
        assert measured.worst == worst
    elif worst is not None:
        assert measured.worst[0] == pytest.approx(worst)
    if kind != "invalid":  # the reference run has the same NaN
        assert first(report).row is row
        assert row.share == pytest.approx(1)


def test_a_difference_of_nearly_equal_numbers_is_a_cancellation() -> None:
    x = RNG.uniform(1e-4, 3e-4, 20).astype(np.float32)
    report = audited(losses.versine, x)
    row = first(report).row
    assert (row.kind, row.op, row.location.line) == ("cancellation", "subtract", 29)
    assert row.share == pytest.approx(1) and row.measured.weight > 0.5
    # A difference of the same size whose operands are exact cancels nothing.
    assert not audited(lambda a: a - np.float32(1), 1 + x).losses


def test_a_reduction_of_float16_is_numpy_s_own() -> None:
    x = np.full((10_000, 2), 0.1, np.float16)
    report = audited(losses.totals, x)
    (row,) = report.losses
    assert (row.kind, row.op, row.measured.changed) == ("accumulation", "sum", 2)
    assert row.measured.worst == (pytest.approx(999.76, abs=0.1), float(x.sum(axis=0)[0]))
    assert row.share == pytest.approx(1)


def test_a_loop_of_roundings_is_one_row() -> None:
    report = audited(losses.walked, np.float32(0.1))
    site = first(report)
    assert (site.row.kind, site.row.op) == ("accumulation", "add")
    assert site.times > 400 and site.share == pytest.approx(1, abs=0.1)
    assert not audited(losses.walked, np.float32(0.125)).losses  # every step is exact


def test_plain_roundings_have_no_row() -> None:
    x = RNG.normal(size=(50, 50)).astype(np.float32)
    assert not audited(lambda a: np.exp(a) @ a + a * a - a, x).losses
    assert not audited(lambda a: (a + a // 2) * 3, np.arange(1000)).losses


def test_an_unsigned_product_that_fits_has_no_row() -> None:
    x = np.arange(16, dtype=np.uint8)
    assert not audited(lambda a: a * a, x).losses
    (row,) = audited(lambda a: a - 3, x).losses
    assert (row.measured.changed, row.measured.worst, row.share) == (3, (-1, 255), 1)


@every("name", sorted(REPORT_FORMATS))
def test_every_format_shows_the_loss(name: str) -> None:
    report = audited(losses.brightened, np.array([[5, 155, 156, 255]], np.uint8))
    text = REPORT_FORMATS[name](report)
    assert "wrap" in text and "156 + 100 = 256 became 0" in text
    assert "1 step of" in text or name not in ("text", "details", "markdown")


def test_the_json_is_as_its_schema_says() -> None:
    report = audited(losses.walked, np.float32(0.1))
    document = json.loads(report.to_json())
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(document, schema())
    (loss,) = document["losses"]
    assert (loss["kind"], loss["rank"], loss["times"]) == ("accumulation", 0, report.sites[0].times)
    assert len(document["casts"]) == len(report.sites) - 1


def test_losses_pass_the_filters_of_a_report() -> None:
    report = audited(losses.brightened, np.array([[5, 156]], np.uint8))
    assert len(report.only(kind="wrap").losses) == len(report.only(dtype="uint8").losses) == 1
    assert not report.only(kind="overflow").losses and not report.only(exact=True).losses
    assert len(report.only(loss="range").losses) == 1


def test_the_fix_of_a_wrap_keeps_the_values() -> None:
    (row,) = audited(losses.brightened, np.array([[5, 156]], np.uint8)).losses
    assert row.fix == 'out = out.astype("int16") + np.uint8(100)'
    (row,) = audited(losses.scaled_peaks, np.array([[1, 200]], np.int16)).losses
    assert row.fix == 'counts.max(axis=1).astype("int32") * 300'


# -- imaginary parts, masks, and roundings that no cast explains


def stored_wave(x: Any) -> Any:
    out = np.zeros(len(x))
    out[:] = np.exp(1j * x)
    return out


COMPLEX = (
    (lambda x: np.exp(1j * x).astype(float), "explicit"),
    (stored_wave, "assignment"),
    (lambda x: np.exp(1j * x).astype(np.float32), "explicit"),
    (lambda x: np.add(np.exp(1j * x), 0, dtype=complex).astype(int), "explicit"),
)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@every(("function", "kind"), COMPLEX)
def test_a_complex_number_that_becomes_real_loses_its_imaginary_part(
    function: Any, kind: str
) -> None:
    report = audited(function, np.arange(1.0, 5.0))
    (output,) = report.outputs
    exact = np.exp(1j * np.arange(1.0, 5.0))
    assert output.differing == 4
    assert output.largest == pytest.approx(np.abs(exact.imag).max(), rel=1e-6)
    (row,) = [x for x in report if x.source.is_complex and not x.target.is_complex]
    assert (row.kind, str(row.source), str(row.target)) == (kind, "complex128", "float64")
    assert row.measured is not None and row.measured.changed == 4
    assert row.share == pytest.approx(1.0, abs=1e-6)
    assert str(type(report.explicit).parse(str(report.explicit))) == str(report.explicit)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_a_real_part_that_the_program_takes_loses_nothing() -> None:
    report = audited(lambda x: np.exp(1j * x).real, np.arange(4.0))
    assert report.outputs[0].differing == 0
    whole = audited(lambda x: (x + 0j).astype(float), np.arange(4.0))
    assert whole.outputs[0].differing == 0 and not any(x.measured.changed for x in whole)


def halves_under_a_mask(x: Any, y: Any) -> Any:
    out = np.zeros(x.shape, np.float16)
    return np.multiply(x, y, out=out, where=y > 0, casting="same_kind")


def test_elements_that_a_mask_leaves_out_lose_nothing() -> None:
    x, y = np.array([1.0, 2.0, 0.0, 4.0]), np.array([1.0, 0.0, 0.0, 2.0])
    report = audited(lambda x, y: np.divide(x, y, out=np.zeros(4), where=y > 0), x, y)
    assert not report.losses and "0 / 0" not in str(report)
    report = audited(halves_under_a_mask, x * 1e5, y * 1e-3 - 1e-4)
    (row,) = [x for x in report if x.target is DType.float16 and x.source is DType.float64]
    assert row.measured is not None and row.measured.elements == 2


def test_the_roundings_of_a_product_have_a_row_beside_an_underflow_of_their_line() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(4, 64)).astype(np.float16), rng.normal(size=(64, 64))

    def spread(x: Any, w: Any) -> Any:
        return np.exp((y := x @ w) - y.max(axis=1, keepdims=True)).sum(axis=1)

    report = audited(spread, x, w.astype(np.float16))
    assert any(site.row.kind == "underflow" for site in report.sites)
    explained = {site.row.op: site.share for site in report.sites if site.share}
    assert max(explained, key=lambda name: explained[name]) == "matmul"
    assert sum(explained.values()) == pytest.approx(1.0, abs=0.1)


def test_shares_of_errors_that_cancel_say_so() -> None:
    def cancelling(x: Any) -> Any:
        return x.astype(np.float32) - x.astype(np.float16).astype(np.float64) * 0.5 - x * 0.5

    report = audited(cancelling, np.array([1 / 3, 1 / 7, 0.3]))
    assert report.outputs[0].overlaps == ("shares overlap" in str(report))


def _at_places(x: Any, at: Any, u: Any) -> Any:
    np.add.at(x, at, u * u)
    return x


def test_sums_at_places_pass_the_errors_of_their_updates() -> None:
    rng = np.random.default_rng(0)
    at, u = rng.integers(-8, 8, (50, 10)), rng.random((50, 10)).astype(np.float16)
    report = audited(_at_places, np.zeros(8, np.float16), at, u)
    exact = np.zeros(8)
    np.add.at(exact, at, u.astype(np.float64) ** 2)
    errors = np.abs(np.asarray(report.results[0], np.float64) - exact)
    assert report.outputs[0].largest == pytest.approx(errors.max())
    shares = {site.row.op: site.share for site in report.sites if site.share}
    assert shares.keys() >= {"index_add"} and sum(shares.values()) <= 1.001


def test_sums_at_places_wrap_and_are_no_expression_to_mend() -> None:
    at, u = np.array([1, 1, -1]), np.array([10, 9, 2], np.int8)
    report = audited(_at_places, np.zeros(3, np.int8), at, u)
    (site,) = report.sites
    assert (site.row.kind, site.row.op, site.share) == ("wrap", "index_add", 1)
    assert site.measured.worst == (181, -75) and not site.row.fix
    ids = np.array([2**62, 2**62 + 1, 5]), np.array([1, 2**61 + 1, 2**55 + 1])
    big = audited(lambda x, u: np.add.at(x, [0, 1, 1], u) or x, *ids)
    assert big.outputs[0].differing == 0 and not big.sites
