"""Volumes, girths and freight weights of parcels measured in millimetres."""
import numpy as np

DIVISOR = 5_000_000


def make_inputs():
    rng = np.random.default_rng(7)
    n = 60
    dims = np.sort(rng.integers(120, 2400, size=(n, 3)), axis=1)[:, ::-1]
    kilos = np.round(rng.gamma(2.0, 9.0, size=n), 2)
    return dims.astype(np.int32), kilos


def volumetric_weight(dims):
    length, width, height = dims.T
    volume = length * width * height
    return volume, volume / DIVISOR


def run(dims, kilos):
    volume, by_volume = volumetric_weight(dims)
    girth = dims[:, 0] + 2 * (dims[:, 1] + dims[:, 2])
    charged = np.maximum(kilos, by_volume)
    for i in np.flatnonzero(girth > 5000)[:3]:
        print(f"parcel {i:3d}: girth {girth[i]} mm, charged {charged[i]:.2f} kg")
    return {
        "volume_mm3": volume,
        "charged_kg": charged,
        "girth_mm": girth,
        "actual_kg": float(kilos.sum()),
    }


ANSWER = {
    "line": 17,
    "fix_line": 17,
    "outputs": {
        "volume_mm3": {"differ": 21},
        "charged_kg": {"differ": 21},
        "girth_mm": {"differ": 0},
        "actual_kg": {"differ": 0},
    },
    "why": "the int32 product of three lengths passes 2**31",
}
