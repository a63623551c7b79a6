"""Apply per-channel gain to ADC counts; channels flagged dead are left at zero."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(96)
    counts = rng.integers(-2048, 2048, size=(8, 120)).astype(np.int32)
    gain = np.array([1, 2, 4, 8, 16, 20, 1, 32], dtype=np.int32)
    alive = np.ones(8, dtype=bool)
    alive[[2, 6]] = False
    return counts, gain, alive


def run(counts, gain, alive):
    n_ch, n_t = counts.shape
    scaled = np.zeros((n_ch, n_t), dtype=np.int16)
    np.multiply(counts, gain[:, None], out=scaled, where=alive[:, None], casting="unsafe")

    offset = scaled.mean(axis=1)
    swing = scaled.max(axis=1).astype(int) - scaled.min(axis=1)
    np.save("scaled.npy", scaled)
    lines = []
    for c in range(n_ch):
        state = "ok" if alive[c] else "dead"
        lines.append(f"{c} {state:5s} offset={offset[c]:.6f} swing={swing[c]}")
    print("\n".join(lines))


def exact(counts, gain, alive):
    rows = [[int(v) * int(g) if a else 0 for v in row]
            for row, g, a in zip(counts, gain, alive)]
    return (rows, [round(sum(r) / len(r), 6) for r in rows], [max(r) - min(r) for r in rows])


ANSWER = {
    "line": 17,
    "kind": "wrap",
    "operation": "int32 products stored through out= into an int16 array wrap modulo 65536",
    "outputs": {
        "scaled.npy": {"size": 960, "differ": 92},
        "offset (printed)": {"size": 8, "differ": 2},
        "swing (printed)": {"size": 8, "differ": 2},
    },
    "fix_line": 16,
    "fix": "scaled = np.zeros((n_ch, n_t), dtype=np.int32)",
}
