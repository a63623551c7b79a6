"""Household electricity meter: register readings from quarter-minute power samples."""
import numpy as np

STEP_MIN = 0.25


def make_inputs():
    rng = np.random.default_rng(41)
    n = 6000
    minute = np.arange(n) * STEP_MIN
    base = 0.1 + 0.9 * (np.mod(minute, 480.0) > 360.0)
    spikes = np.where(rng.random(n) < 0.01, 1.7, 0.0)
    return ((base + spikes).astype(np.float32),)


def register(power_kw):
    reading = np.float32(0.0)
    for kw in power_kw:
        reading = reading + kw * np.float32(STEP_MIN)
        yield reading


def run(power_kw):
    readings = np.array(list(register(power_kw)))
    day_end = readings[-1]
    peak_kw = power_kw.max()
    n_high = int(np.count_nonzero(power_kw > 0.5))
    print(f"register {day_end / 60:.6f} kWh, peak {peak_kw:.2f} kW")
    return {
        "readings": readings[199::200],
        "day_end_kw_min": day_end,
        "peak_kw": peak_kw,
        "n_high": n_high,
    }


ANSWER = {
    "line": 19,
    "fix_line": 17,
    "outputs": {
        "readings": {"differ": 30},
        "day_end_kw_min": {"differ": 1},
        "peak_kw": {"differ": 0},
        "n_high": {"differ": 0},
    },
    "why": "the register is a float32 sum of thousands of small steps, and the rounding errors add up",
}
