"""Integers that a promotion to float64 rounds: the audit tells what Python's integers tell."""

import numpy as np
import pytest

from graphir.runtime import record
from graphir.runtime.audit import regions
from tests.support.tables import every


def back(a, b):
    return (a + b).astype(np.int64) - a


def total(a, b):
    return (a * np.float64(1) + b).astype(np.int64)


def exact(a, b):
    return a + b - a


@every("top", [2**52, 2**60, 2**62])
def test_the_error_is_that_of_exact_integers(top):
    rng = np.random.default_rng(top)
    a, b = rng.integers(0, top, 50), rng.integers(0, top, 50).astype(np.uint64)
    report = record(back, a, b).audit()
    (output,) = report.outputs
    wrong = [int(x) - int(y) for x, y in zip(back(a, b), b, strict=True)]
    assert output.differing == sum(map(bool, wrong))
    assert output.largest == max(map(abs, wrong))
    rows = report.only("implicit", exact=False)
    blamed = [row for row in rows if any(row.shares)]
    assert bool(blamed) == any(wrong)
    assert all(row.op == "add" and str(row.target) == "float64" for row in blamed)


def test_small_integers_beside_rounded_ones_stay_exact():
    keys, rows = np.full(5, 2**56, np.uint64), np.arange(5)
    report = record(lambda a, b: (a + b).astype(np.uint64), keys, rows).audit()
    wrong = [int(x) - (2**56 + i) for i, x in enumerate((keys + rows).astype(np.uint64))]
    (output,) = report.outputs
    assert output.differing == sum(map(bool, wrong)) == 4
    assert output.largest == max(map(abs, wrong))
    odd = record(lambda a, b: (a + b).astype(np.uint64), keys + np.uint64(7), rows).audit()
    assert [(row.op, row.operand) for row in odd if row.share] == [("add", "lhs")]


def test_integers_that_float64_has_are_floats_there():
    a = np.array([1, 2**53, -(2**53)])
    assert record(total, a, np.ones(3)).audit().outputs[0].differing == 0
    assert record(exact, a, np.arange(3)).audit().outputs[0].differing == 0


# -- integers beyond 2**53 among floats


def stored(i):
    out = np.full(len(i), np.nan)
    for k in range(len(i)):
        out[k] = i[k]
    return out


def columns(i):
    return np.column_stack([i, np.linspace(0.0, 1.0, len(i))])


def there_and_back(i):
    return np.nan_to_num(np.append(i, np.nan)).astype(np.int64)


def many(i):
    ids = np.tile(i, 20_000)
    return np.where(ids > 0, ids, np.nan)


# Each program gives some elements of its argument, which is positive, and other floats.
MOVES = {
    "where": lambda i: np.where(i > 0, i, np.nan),
    "append": lambda i: np.append(i, np.nan),
    "select": lambda i: np.select([i > 0], [i], np.nan),
    "maximum": lambda i: np.maximum(i, 0.5),
    "clip": lambda i: np.clip(i.astype(float), 0.5, None),
    "cast": lambda i: i.astype(float).astype(np.int64),
    "sort": lambda i: np.sort(np.append(i[::-1], np.nan)),
    "extreme": lambda i: np.append(i, np.nan)[:-1].max(keepdims=True),
    "negative": lambda i: -np.negative(np.append(i, 0.25)),
    "abs": lambda i: np.abs(np.append(-i, 0.25)),
    "pad": lambda i: np.pad(i.astype(float), 2, constant_values=np.nan),
    "transpose": lambda i: np.stack([i, np.ones(len(i))]).T[::-1],
    "store": stored,
    "columns": columns,
    "back": there_and_back,
    "many": many,
}


@every("name", MOVES)
def test_integers_that_become_floats_lose_what_float64_lacks(name):
    i = 2**53 + 1 + 3 * np.arange(9)
    report = record(MOVES[name], i).audit()
    (output,) = report.outputs
    rounded = {int(x) for x in i.tolist() if int(float(x)) != x}
    kept = {int(x) for x in np.nan_to_num(report.results[0]).ravel().tolist()}
    extreme = {max(i.tolist())} if name == "extreme" else set(i.tolist())
    times = 20_000 if name == "many" else 1
    assert output.differing == times * len(rounded & extreme)
    assert output.largest == 1.0 and kept >= {int(float(x)) for x in extreme}
    shares = [sum(site.shares) for site in report.sites if site.shares and any(site.shares)]
    assert np.allclose(shares, 1.0)


UNSIGNED = {
    "cast": lambda u: u.astype(float),
    "complex": lambda u: u.astype(complex),
    "signed to complex": lambda u: (u >> 1).astype(np.int64).astype(complex),
    "append": lambda u: np.append(u, 0.5),
    "signed": lambda u: u.astype(np.int64),
    "complement": lambda u: ~u,
    "bits": lambda u: u[::-1] & 0xFF,
    "bits of what wrapped": lambda u: (u * 3) & u,
    "part": lambda u: u[:2] - u[1],
    "greatest": lambda u: np.maximum(u, 7),
}


@every("name", UNSIGNED)
def test_uint64_beyond_int64_is_exact_where_it_moves_and_in_its_bits(name):
    u = np.array([11, 2**53 + 1, 2**63 + 1, 2**64 - 1], np.uint64)
    report = record(UNSIGNED[name], u).audit()
    exact = UNSIGNED[name](np.array(u.tolist(), object)) if name == "part" else None
    exact = {
        "signed": u.tolist(),
        "signed to complex": [x >> 1 for x in u.tolist()],
        "append": [*u.tolist(), 0.5],
        "part": exact,
    }.get(name, u.tolist() if name in ("cast", "complex") else report.results[0].tolist())
    real = [x.real if isinstance(x, complex) else x for x in report.results[0].tolist()]
    assert report.outputs[0].differing == sum(x != y for x, y in zip(real, exact, strict=True))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_regions_of_large_arrays_keep_low_parts(monkeypatch):
    u = np.array([11, 2**53 + 1, 2**62 + 2**8 + 30, 2**64 - 9], np.uint64)

    def program(u):
        shifted = u.astype(float).astype(np.int64) >> 2
        return shifted + shifted

    whole = record(program, u).audit()
    monkeypatch.setattr(regions, "LEAST", 1)
    by_blocks = record(program, u).audit()
    assert [x.differing for x in by_blocks.outputs] == [x.differing for x in whole.outputs]
    assert whole.outputs[0].differing == 2


def stored_beside_nan(i):
    out = np.zeros(len(i), np.int32)
    np.copyto(out, i, casting="unsafe")
    return out % out


LESS_CLEAN = {
    "median": lambda i: np.median(np.append(i - np.uint8(250), np.uint8([99, 99, 20, 30]))),
    "at": lambda i: np.add.at(k := i.astype(np.int64) + (2**63 - 300), [0, 1], 200) or k,
    "at powers": lambda i: np.multiply.at(k := i.astype(np.int64), [0] * 9, i[:1]) or k,
    "fraction": lambda i: stored_fractions(i).astype(np.int32),
}


def stored_fractions(i):
    out = np.zeros(len(i), np.int64)
    out[:] = i / 2
    return out


@every("name", LESS_CLEAN)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_integers_that_wrap_in_calls_or_lost_a_fraction_are_not_clean(name):
    (output,) = record(LESS_CLEAN[name], np.array([201, 7, 250], np.uint8)).audit().outputs
    assert output.differing != 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_remainders_by_zero_beside_nan_are_those_of_integers():
    (output,) = record(stored_beside_nan, np.array([np.nan, 0, 9])).audit().outputs
    assert output.differing == 1


def test_comparisons_of_integers_as_floats_see_their_last_digits():
    i = np.array([2**53, 2**53 + 1])
    report = record(lambda i: np.append(i[:1], 0.5) == np.append(i[1:], 0.5), i).audit()
    assert report.results[0].tolist() == [True, True] and report.outputs[0].differing == 1


SUMS = {
    "add": lambda i: np.where(i > 0, i, 0.0) + np.where(i > 0, i, 0.0)[::-1],
    "sum": lambda i: np.where(i > 0, i, 0.0).sum(keepdims=True),
    "bincount": lambda i: np.bincount(np.arange(9) % 4, weights=i, minlength=4),
}


@every("name", SUMS)
def test_sums_of_integers_as_floats_are_those_of_integers(name):
    i = 2**53 + 1 + 3 * np.arange(9)
    report = record(SUMS[name], i).audit()
    exact = {
        "add": [int(a) + int(b) for a, b in zip(i, i[::-1], strict=True)],
        "sum": [sum(i.tolist())],
        "bincount": [sum(i.tolist()[k::4]) for k in range(4)],
    }
    wrong = [int(x) - y for x, y in zip(report.results[0], exact[name], strict=True)]
    assert report.outputs[0].differing == sum(map(bool, wrong))
    assert report.outputs[0].largest == max(map(abs, wrong))


def test_arithmetic_on_rounded_integers_starts_from_the_rounding():
    i = 2**53 + 1 + 3 * np.arange(9)
    report = record(lambda i: np.where(i > 0, i, np.nan) * 0.3, i).audit()
    assert report.outputs[0].differing == 0
    (site,) = [x for x in report.sites if x.measured.changed]
    assert site.vanished and "none differs" in str(report)
