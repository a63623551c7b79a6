"""Dose statistics under a soft (partial volume) region-of-interest mask."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(12)
    yy, xx = np.mgrid[0:40, 0:48]
    d = np.hypot((yy - 19.6) / 19.0, (xx - 23.4) / 22.5)
    mask = np.clip(np.round((1.06 - d) * 24) / 4, 0, 1).astype(np.float16)
    dose = (2.0 + np.exp(-d ** 2) + rng.normal(0, 0.02, d.shape)).astype(np.float32)
    return dose, mask, 0.9375


def run(dose, mask, pixel_mm):
    if mask.min() < 0 or mask.max() > 1:
        raise ValueError("mask must lie in [0, 1]")
    weight = mask.sum()
    area = float(weight) * pixel_mm ** 2
    weighted = dose.astype(np.float64) * mask
    mean = weighted.sum() / float(weight)
    touched = int(np.count_nonzero(mask))
    partial = int(np.count_nonzero((mask > 0) & (mask < 1)))
    return {"area_mm2": area, "mean_dose": mean,
            "touched": touched, "partial": partial,
            "max_dose": float(dose[mask > 0.5].max())}


def exact(dose, mask, pixel_mm):
    m = [float(v) for v in mask.ravel()]
    d = [float(v) for v in dose.ravel()]
    w = sum(m)
    return ([w * pixel_mm ** 2], [sum(a * b for a, b in zip(d, m)) / w],
            sum(1 for v in m if v), sum(1 for v in m if 0 < v < 1),
            [max(a for a, b in zip(d, m) if b > 0.5)])


ANSWER = {
    "line": 17,
    "kind": "rounding",
    "operation": "sum of a float16 mask is returned in float16, whose spacing above 1024 is 1 (quarters are lost)",
    "outputs": {
        "area_mm2": {"size": 1, "differ": 1},
        "mean_dose": {"size": 1, "differ": 1},
        "touched": {"size": 1, "differ": 0},
        "partial": {"size": 1, "differ": 0},
        "max_dose": {"size": 1, "differ": 0},
    },
    "fix": "weight = mask.sum(dtype=np.float64)",
}
