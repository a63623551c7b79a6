"""Rebuild the absolute register of an electricity meter from 15-minute consumption."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(60)
    hours = np.arange(672) * 0.25
    usage = 0.2 + 0.15 * np.sin(2 * np.pi * hours / 24) ** 2 + rng.exponential(0.05, 672)
    register = np.float32(1234567.5)
    return register, usage.astype(np.float32)


def daily(usage):
    return usage.reshape(-1, 96).sum(axis=1)


def run(register, usage):
    deltas = np.concatenate(([register], usage))
    deltas[~np.isfinite(deltas)] = 0
    readings = np.cumsum(deltas)
    np.savetxt("readings.txt", readings, fmt="%.4f", header="kWh")
    per_day = daily(usage)
    np.savetxt("daily.txt", per_day, fmt="%.7g")
    return readings[-1] - readings[0]


def exact(register, usage):
    total = float(register)
    out = [total]
    for u in usage:
        total += float(u)
        out.append(total)
    days = [sum(float(u) for u in usage[k:k + 96]) for k in range(0, len(usage), 96)]
    return [out[-1] - out[0]], [round(v, 4) for v in out], days


ANSWER = {
    "line": 20,
    "kind": "rounding",
    "operation": "cumulative sum carried in float32: increments of 0.2 are rounded to the 0.125 spacing at 1.2e6",
    "outputs": {
        "consumption over the period (returned)": {"size": 1, "differ": 1},
        "readings.txt": {"size": 673, "differ": 255},
        "daily.txt": {"size": 7, "differ": 0},
    },
    "fix": "readings = np.cumsum(deltas, dtype=np.float64)",
}
