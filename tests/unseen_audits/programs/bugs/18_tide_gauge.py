# Pack a tide record (metres about chart datum) into int16 centimetres
import numpy as np


def make_inputs():
    rng = np.random.default_rng(55)
    hours = np.arange(0, 30, 0.05)
    level = 1.31 * np.cos(2 * np.pi * hours / 12.4206) + 0.44 * np.cos(2 * np.pi * hours / 12 + 0.6)
    level += 0.02 * rng.standard_normal(hours.size)
    return hours, level


def run(hours, level):
    good = np.isfinite(level)
    hours, level = hours[good], level[good]

    packed = (level * 100.0 + 0.5).astype(np.int16)
    packed.tofile("tide.i16")

    # turning points of the packed record, for the index file
    high = int(packed.argmax())
    low = int(packed.argmin())
    with open("tide.idx", "w") as f:
        f.write(f"n {packed.size}\n")
        f.write(f"high {packed[high]} cm at {hours[high]:.2f} h\n")
        f.write(f"low {packed[low]} cm at {hours[low]:.2f} h\n")


def exact(hours, level):
    import math
    cm = [math.floor(float(v) * 100.0 + 0.5) for v in level]
    h = [float(v) for v in hours]
    return (cm, len(cm), max(cm), [round(h[cm.index(max(cm))], 2)],
            min(cm), [round(h[cm.index(min(cm))], 2)])


ANSWER = {
    "line": 17,
    "kind": "truncation",
    "operation": "float64 -> int16 truncates towards zero, so adding 0.5 rounds negative levels one centimetre up",
    "outputs": {
        "tide.i16": {"size": 600, "differ": 296},
        "n (tide.idx)": {"size": 1, "differ": 0},
        "high cm (tide.idx)": {"size": 1, "differ": 0},
        "high hour (tide.idx)": {"size": 1, "differ": 0},
        "low cm (tide.idx)": {"size": 1, "differ": 1},
        "low hour (tide.idx)": {"size": 1, "differ": 0},
    },
    "fix": "packed = np.floor(level * 100.0 + 0.5).astype(np.int16)",
}
