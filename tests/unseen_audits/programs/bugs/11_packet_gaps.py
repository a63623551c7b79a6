"""Inter-arrival statistics of packets from a capture file (sec / nsec pairs)."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(802)
    gaps = rng.choice([12_000, 120_000, 350_123, 1_500_777], size=400, p=[.4, .3, .2, .1])
    gaps = gaps + rng.integers(0, 900, size=400)
    ns = 981_114_203 + np.cumsum(gaps)
    sec = 1_712_345_678 + ns // 10**9
    return sec, ns % 10**9


def run(sec, nsec):
    t = sec + nsec * 1e-9
    gap_us = np.diff(t) * 1e6
    lo, med, hi = np.percentile(gap_us, [0, 50, 100])
    burst = gap_us < 50.0
    summary = {
        "gaps_us": list(gap_us),
        "min": lo,
        "median": med,
        "max": hi,
        "in_burst": int(burst.sum()),
    }
    if summary["in_burst"] > 0.9 * gap_us.size:
        print("warning: capture is nearly one single burst")
    return summary


def exact(sec, nsec):
    ns = [int(s) * 10**9 + int(n) for s, n in zip(sec, nsec)]
    g = [(b - a) / 1000 for a, b in zip(ns, ns[1:])]
    s = sorted(g)
    mid = len(s) // 2
    return (g, [s[0]], [s[mid] if len(s) % 2 else (s[mid - 1] + s[mid]) / 2], [s[-1]],
            sum(1 for v in g if v < 50))


ANSWER = {
    "line": 15,
    "kind": "rounding",
    "operation": "absolute time in float64 seconds: int64 + float64 -> float64 whose spacing at 1.7e9 s is 238 ns",
    "outputs": {
        "gaps_us (dict entry)": {"size": 399, "differ": 399},
        "min (dict entry)": {"size": 1, "differ": 1},
        "median (dict entry)": {"size": 1, "differ": 1},
        "max (dict entry)": {"size": 1, "differ": 1},
        "in_burst (dict entry)": {"size": 1, "differ": 0},
    },
    "fix": "t = (sec - sec[0]) + nsec * 1e-9",
}
