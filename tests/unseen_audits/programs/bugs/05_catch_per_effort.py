"""Standardised catch-per-unit-effort index of a trawl survey."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(404)
    n = 240
    year = rng.integers(2010, 2020, size=n)
    hours = rng.integers(2, 9, size=n)
    catch = rng.poisson(14 - (year - 2010) * 0.9) * rng.integers(1, 3, size=n)
    return year, catch, hours


def run(year, catch, hours):
    """Return yearly mean CPUE, scaled to the first year, and the per-haul values."""
    order = np.argsort(year, kind="stable")
    year, catch, hours = year[order], catch[order], hours[order]

    cpue = catch // hours

    years, start = np.unique(year, return_index=True)
    count = np.diff(np.append(start, year.size))
    yearly = np.add.reduceat(cpue, start) / count
    index = yearly / yearly[0]
    zero_hauls = int((catch == 0).sum())
    return {
        "years": years.tolist(),
        "yearly": yearly.tolist(),
        "index": np.round(index, 9).tolist(),
        "zero_hauls": zero_hauls,
    }


def exact(year, catch, hours):
    from fractions import Fraction
    rows = {}
    for y, c, h in zip(year.tolist(), catch.tolist(), hours.tolist()):
        rows.setdefault(y, []).append(Fraction(c, h))
    ys = sorted(rows)
    means = [sum(rows[y]) / len(rows[y]) for y in ys]
    return (ys, [float(m) for m in means], [float(m / means[0]) for m in means],
            int(sum(1 for c in catch.tolist() if c == 0)))


ANSWER = {
    "line": 19,
    "kind": "division",
    "operation": "floor division of int64 by int64 drops the fraction of the rate (int64 // int64 -> int64)",
    "outputs": {
        "years (dict entry)": {"size": 10, "differ": 0},
        "yearly (dict entry)": {"size": 10, "differ": 10},
        "index (dict entry)": {"size": 10, "differ": 9},
        "zero_hauls (dict entry)": {"size": 1, "differ": 0},
    },
    "fix": "cpue = catch / hours",
}
