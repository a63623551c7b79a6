"""Soil moisture probes: readings coded in tenths of a percent for a data logger."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(18)
    reading = rng.normal(24.0, 6.0, size=(6, 24))
    reading[rng.random(reading.shape) < 0.07] = np.nan
    return (reading,)


def encode(reading):
    tenths = np.rint(reading * 10.0)
    return tenths.astype(np.int32)


def run(reading):
    code = encode(reading)
    missing = np.isnan(reading).sum(axis=1)
    probe_mean = code.mean(axis=1)
    with open("codes.bin", "wb") as handle:
        handle.write(code.astype("<i4").tobytes())
    return {
        "code": code,
        "probe_mean": probe_mean,
        "missing": missing,
        "wettest": float(np.nanmax(reading)),
    }


ANSWER = {
    "line": 14,
    "fix_line": 14,
    "outputs": {
        "code": {"differ": 8},
        "probe_mean": {"differ": 5},
        "missing": {"differ": 0},
        "wettest": {"differ": 0},
    },
    "why": "NaN has no integer, missing readings become the lowest int32",
}
