"""Control charts of a turned shaft: Xbar and R charts, capability, CUSUM, run rules, gauge study."""
from dataclasses import dataclass

import numpy as np

A2, D3, D4, D2 = 0.577, 0.0, 2.114, 2.326
LOWER, UPPER = 11.95, 12.05


@dataclass(frozen=True)
class Limits:
    low: float
    centre: float
    high: float

    def outside(self, values):
        return np.flatnonzero((values < self.low) | (values > self.high))


def make_inputs():
    rng = np.random.default_rng(1212)
    level = np.full(40, 12.003)
    level[26:] += 0.009
    diameters = rng.normal(level[:, None], 0.011, size=(40, 5)).astype(np.float32)
    parts = rng.normal(12.0, 0.012, size=10)
    operators = np.array([0.0, 0.0015, -0.0008])
    gauge = parts[:, None, None] + operators[None, :, None] + rng.normal(0.0, 0.002, size=(10, 3, 2))
    defects = rng.poisson(3.1, size=40)
    return diameters, np.round(gauge, 4), defects


def subgroup_charts(diameters):
    mean = diameters.mean(axis=1, dtype=np.float64)
    spread = np.ptp(diameters, axis=1).astype(np.float64)
    grand, rbar = mean.mean(), spread.mean()
    xbar = Limits(grand - A2 * rbar, grand, grand + A2 * rbar)
    rchart = Limits(D3 * rbar, rbar, D4 * rbar)
    return mean, spread, xbar, rchart


def capability(diameters, rbar):
    values = diameters.astype(np.float64).ravel()
    within = rbar / D2
    overall = values.std(ddof=1)
    middle = values.mean()
    margin = min(UPPER - middle, middle - LOWER)
    return {
        "cp": (UPPER - LOWER) / (6 * within),
        "cpk": margin / (3 * within),
        "ppk": margin / (3 * overall),
        "out_of_tolerance": int(np.count_nonzero((values < LOWER) | (values > UPPER))),
    }


def cusum(mean, target, sigma, slack=0.5, decision=4.0):
    high = low = 0.0
    track = np.empty((mean.size, 2))
    alarm = None
    for i, z in enumerate((mean - target) / sigma):
        high = max(0.0, high + z - slack)
        low = max(0.0, low - z - slack)
        track[i] = high, low
        if alarm is None and max(high, low) > decision:
            alarm = i
    return track, alarm


def longest_side_run(mean, centre):
    side = np.sign(mean - centre).astype(np.int8)
    best = run_length = 1
    for a, b in zip(side, side[1:]):
        run_length = run_length + 1 if a == b else 1
        best = max(best, run_length)
    return best


def moving_average(values, lam=0.2):
    smoothed = np.empty_like(values)
    state = values[:10].mean()
    for i, v in enumerate(values):
        state = lam * v + (1.0 - lam) * state
        smoothed[i] = state
    return smoothed


def gauge_study(gauge):
    """Variance parts of a crossed study: parts, operators, repeats."""
    n_parts, n_ops, n_rep = gauge.shape
    grand = gauge.mean()
    part_ms = n_ops * n_rep * np.sum((gauge.mean(axis=(1, 2)) - grand) ** 2) / (n_parts - 1)
    op_ms = n_parts * n_rep * np.sum((gauge.mean(axis=(0, 2)) - grand) ** 2) / (n_ops - 1)
    rep_ms = np.sum((gauge - gauge.mean(axis=2, keepdims=True)) ** 2) / (n_parts * n_ops * (n_rep - 1))
    operator = max(0.0, (op_ms - rep_ms) / (n_parts * n_rep))
    part = max(0.0, (part_ms - rep_ms) / (n_ops * n_rep))
    return np.array([part, operator, rep_ms])


def run(diameters, gauge, defects):
    mean, spread, xbar, rchart = subgroup_charts(diameters)
    indices = capability(diameters, rchart.centre)
    track, alarm = cusum(mean, mean[:20].mean(), rchart.centre / D2 / np.sqrt(5))
    parts = gauge_study(gauge)
    c_bar = defects.mean()
    c_chart = Limits(max(0.0, c_bar - 3 * np.sqrt(c_bar)), float(c_bar), float(c_bar + 3 * np.sqrt(c_bar)))
    print("Xbar limits %.4f %.4f %.4f, outside: %s" % (xbar.low, xbar.centre, xbar.high, xbar.outside(mean).tolist()))
    print(f"Cp {indices['cp']:.3f}  Cpk {indices['cpk']:.3f}  CUSUM alarm at subgroup {alarm}")
    print(f"gauge share {100 * np.sqrt(parts[1:].sum() / parts.sum()):.2f} %, c chart up to {c_chart.high:.2f}")
    np.savetxt("cusum.txt", track, fmt="%.5f", header="high low")
    return {
        "mean": mean, "spread": spread, "outside": xbar.outside(mean), "indices": indices,
        "track": track, "ewma": moving_average(mean), "run_length": longest_side_run(mean, xbar.centre),
        "gauge": parts, "defects_total": int(defects.sum()), "defect_days": c_chart.outside(defects),
    }
