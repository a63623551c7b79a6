"""Number of running orders of a concert programme by number of pieces."""
import numpy as np


def make_inputs():
    minutes = np.array([4, 7, 3, 5, 6, 4, 8, 5, 3, 6, 7, 4, 5, 9, 3, 4, 6, 5, 7, 4, 3, 8, 5, 6])
    return (minutes,)


def orderings(n_max):
    k = np.arange(1, n_max + 1)
    return np.cumprod(k)


def run(minutes):
    ways = orderings(minutes.size)
    digits = np.cumsum(np.log10(np.arange(1, minutes.size + 1)))
    pairs = np.arange(1, minutes.size + 1) * np.arange(minutes.size) // 2
    start = np.concatenate([[0], np.cumsum(minutes[:-1])])
    for k in (3, 6, 9):
        print(f"{k} pieces: {ways[k - 1]:,} orders")
    return {
        "ways": ways,
        "log10_ways": digits,
        "pairs": pairs,
        "start_minute": start,
    }


ANSWER = {
    "line": 12,
    "fix_line": 12,
    "outputs": {
        "ways": {"differ": 4},
        "log10_ways": {"differ": 0},
        "pairs": {"differ": 0},
        "start_minute": {"differ": 0},
    },
    "why": "factorials above 20! pass int64 and wrap",
}
