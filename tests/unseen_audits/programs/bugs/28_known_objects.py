"""Cross-match detections against a catalogue by 64-bit source id."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(2013)
    catalogue = rng.choice(2**61, size=250).astype(np.int64) + 2**61
    hit = rng.choice(catalogue, size=120)
    # half of the detections are companions: the last digits of the id differ
    shift = np.where(rng.random(120) < 0.5, rng.integers(1, 40, size=120), 0)
    detections = (hit + shift).astype(np.uint64)
    mag = rng.uniform(12, 20, size=120)
    return detections, mag, catalogue


def run(detections, mag, catalogue):
    known = np.isin(detections, catalogue)

    fresh = detections[~known]
    brightest = mag[known].min() if known.any() else np.nan
    np.savetxt("flags.txt", known, fmt="%d")
    print(f"{known.sum()} known, {fresh.size} new, brightest known {brightest:.6f}")
    faint = mag > 18
    return np.count_nonzero(known & faint), np.count_nonzero(faint)


def exact(detections, mag, catalogue):
    cat = set(catalogue.tolist())
    flags = [int(d in cat) for d in detections.tolist()]
    m = mag.tolist()
    return (sum(f and v > 18 for f, v in zip(flags, m)), sum(v > 18 for v in m),
            flags, sum(flags), len(flags) - sum(flags),
            [round(min(v for f, v in zip(flags, m) if f), 6)])


ANSWER = {
    "line": 17,
    "kind": "rounding",
    "operation": "np.isin of uint64 against int64 compares them as float64, so ids that differ by less than 512 are equal",
    "outputs": {
        "known and faint (returned, first)": {"size": 1, "differ": 1},
        "faint (returned, second)": {"size": 1, "differ": 0},
        "flags.txt": {"size": 120, "differ": 63},
        "known (printed)": {"size": 1, "differ": 1},
        "new (printed)": {"size": 1, "differ": 1},
        "brightest known (printed)": {"size": 1, "differ": 0},
    },
    "fix": "known = np.isin(detections, catalogue.astype(np.uint64))",
}
