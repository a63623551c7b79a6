"""Reproduce the random stream of an old simulation (Numerical Recipes LCG, 32 bit)."""
import numpy as np


def make_inputs():
    return np.arange(1, 13, dtype=np.uint32) * np.uint32(7919), 40


def run(seeds, n):
    a = np.uint32(1664525)
    c = np.uint32(1013904223)
    state = seeds.copy()
    draws = np.empty((n, seeds.size))
    with np.errstate(over="ignore"):
        for k in range(n):
            state = state * a + c
            draws[k] = state / 4294967296.0

    inside = (draws[0::2] ** 2 + draws[1::2] ** 2) < 1.0
    pi = 4.0 * inside.mean()
    np.savetxt("last_state.txt", state, fmt="%d")
    print("pi is about", round(float(pi), 6))
    return draws


def exact(seeds, n):
    st, rows = seeds.tolist(), []
    for _ in range(n):
        st = [(1664525 * s + 1013904223) % 2**32 for s in st]
        rows.append([s / 2**32 for s in st])
    hit = [x * x + y * y < 1 for p, q in zip(rows[0::2], rows[1::2]) for x, y in zip(p, q)]
    return rows, st, [round(4 * sum(hit) / len(hit), 6)]


ANSWER = {
    "outputs": {
        "draws (returned)": {"size": 480, "differ": 0, "intended": True},
        "last_state.txt": {"size": 12, "differ": 0, "intended": True},
        "pi (printed)": {"size": 1, "differ": 0, "intended": True},
    },
    "note": "a linear congruential generator modulo 2**32: wrapping in uint32 is its definition; uint32 -> float64 is exact",
}
