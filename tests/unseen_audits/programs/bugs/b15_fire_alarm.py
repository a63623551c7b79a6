"""Fire alarm by majority of three detectors over a series of readings."""
import numpy as np

LIMITS = {"smoke": 0.12, "heat": 58.0, "gas": 60.0}


def make_inputs():
    rng = np.random.default_rng(15)
    n = 200
    event = np.zeros(n)
    event[60:75] = 1.0
    event[140:150] = 1.0
    smoke = 0.04 + 0.12 * event + rng.normal(0, 0.03, n)
    heat = 31.0 + 34.0 * event + rng.normal(0, 9.0, n)
    gas = 22.0 + 55.0 * event + rng.normal(0, 12.0, n)
    return smoke, heat, gas


def run(smoke, heat, gas):
    over_smoke = smoke > LIMITS["smoke"]
    over_heat = heat > LIMITS["heat"]
    over_gas = gas > LIMITS["gas"]
    votes = over_smoke + over_heat + over_gas
    alarm = votes >= 2
    singles = np.array([over_smoke.sum(), over_heat.sum(), over_gas.sum()])
    return {
        "alarm": alarm,
        "n_alarm": int(alarm.sum()),
        "singles": singles,
        "hottest": float(heat.max()),
    }


ANSWER = {
    "line": 23,
    "fix_line": 23,
    "outputs": {
        "alarm": {"differ": 25},
        "n_alarm": {"differ": 1},
        "singles": {"differ": 0},
        "hottest": {"differ": 0},
    },
    "why": "the sum of bools is a logical or, never 2",
}
