"""Snow depths in centimetres packed to 16-bit codes with a code for missing values."""
import numpy as np

MISSING = -9999


def make_inputs():
    rng = np.random.default_rng(307)
    depth = np.abs(rng.normal(35.0, 20.0, size=(9, 31)))
    depth[rng.random(depth.shape) < 0.1] = np.nan
    return (depth,)


def pack(depth):
    tenths = np.rint(depth * 10.0)
    if np.nanmax(tenths) > np.iinfo(np.int16).max:
        raise OverflowError("depth out of range")
    return np.where(np.isnan(tenths), MISSING, tenths).astype(np.int16)


def unpack(code):
    present = code != MISSING
    return np.where(present, code / 10.0, np.nan)


def run(depth):
    code = pack(depth)
    back = unpack(code)
    seasonal = np.nanmean(back, axis=1)
    days_known = np.count_nonzero(code != MISSING, axis=1)
    deepest = np.nanargmax(back, axis=1)
    code.tofile("depth.i2")
    return {
        "code": code,
        "seasonal": seasonal,
        "days_known": days_known,
        "deepest_day": deepest,
        "error_ok": bool(np.nanmax(np.abs(back - depth)) <= 0.05 + 1e-9),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "code": {"differ": 0},
        "seasonal": {"differ": 0},
        "days_known": {"differ": 0},
        "deepest_day": {"differ": 0},
        "error_ok": {"differ": 0},
    },
    "why": "NaN is replaced before the cast, values are whole and in range",
}
