"""Housekeeping log of a spinning spacecraft: mission clock and spin angle per tick."""
import numpy as np


def make_inputs():
    start = np.float32(90_000.0)
    dt = np.float32(0.04)
    rng = np.random.default_rng(7)
    rate = (6.0 + 0.01 * rng.standard_normal(400)).astype(np.float64)   # deg / s
    return start, dt, rate


def run(start, dt, rate):
    clock = start
    angle = 0.0
    log = []
    for r in rate:
        clock += dt
        angle = (angle + r * 0.04) % 360.0
        log.append((clock, angle))

    log = np.array(log, dtype=float)
    elapsed = log[:, 0] - float(start)
    turns = np.count_nonzero(np.diff(log[:, 1]) < 0)
    np.savetxt("clock.csv", elapsed, fmt="%.6f")
    mean_rate = rate.sum() * 0.04 / elapsed[-1]
    print(f"turns={turns} mean rate={mean_rate:.6f} deg/s")
    return log[:, 1]


def exact(start, dt, rate):
    step = float(dt)
    el, ang, a = [], [], 0.0
    for k, r in enumerate(rate.tolist(), 1):
        el.append(k * step)
        a = (a + r * 0.04) % 360.0
        ang.append(a)
    turns = sum(q < p for p, q in zip(ang, ang[1:]))
    return (ang, [round(v, 6) for v in el], turns,
            [round(float(sum(rate.tolist())) * 0.04 / el[-1], 6)])


ANSWER = {
    "line": 18,
    "kind": "rounding",
    "operation": "float32 running clock: increments of 0.04 s are rounded to the 0.0078 s spacing at 90000 s",
    "outputs": {
        "angle (returned)": {"size": 400, "differ": 0},
        "clock.csv": {"size": 400, "differ": 400},
        "turns (printed)": {"size": 1, "differ": 0},
        "mean rate (printed)": {"size": 1, "differ": 1},
    },
    "fix_line": 14,
    "fix": "clock = np.float64(start)",
}
