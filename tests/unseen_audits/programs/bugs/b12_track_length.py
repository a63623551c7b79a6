"""Length of a surveyed foot path from projected coordinates in metres."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(12)
    heading = np.cumsum(rng.normal(0.0, 0.25, size=50))
    step = rng.uniform(1.5, 4.0, size=50)
    easting = 482_310.37 + np.cumsum(step * np.cos(heading))
    northing = 5_412_907.81 + np.cumsum(step * np.sin(heading))
    height = 412.0 + np.cumsum(rng.normal(0.0, 0.2, size=50))
    return easting, northing, height


def run(easting, northing, height):
    path = np.column_stack([easting, northing]).astype(np.float32)
    leg = np.hypot(*np.diff(path, axis=0).T)
    climb = np.clip(np.diff(height), 0.0, None).sum()
    bounds = (easting.min(), easting.max(), northing.min(), northing.max())
    path.tofile("path.bin")
    print(f"length {leg.sum():.2f} m, climb {climb:.2f} m")
    return {
        "leg": leg,
        "length": leg.sum(),
        "climb": climb,
        "bounds": np.array(bounds),
    }


ANSWER = {
    "line": 16,
    "fix_line": 16,
    "outputs": {
        "leg": {"differ": 49},
        "length": {"differ": 1},
        "climb": {"differ": 0},
        "bounds": {"differ": 0},
    },
    "why": "northings of 5.4 million metres have steps of half a metre in float32",
}
