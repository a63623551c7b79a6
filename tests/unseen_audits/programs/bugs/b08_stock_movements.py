"""Daily stock levels of articles: movements, net change and mean level."""
import json

import numpy as np


def make_inputs():
    rng = np.random.default_rng(88)
    arrivals = rng.poisson(30, size=(8, 15))
    sales = rng.poisson(28, size=(8, 15))
    level = 400 + np.cumsum(arrivals - sales, axis=1)
    return (level.astype(np.uint16),)


def summarise(level):
    movement = np.diff(level, axis=1)
    return {
        "movement": movement,
        "net": movement.sum(axis=1),
        "closing": level[:, -1],
        "mean_level": level.mean(axis=1),
    }


def run(level):
    result = summarise(level)
    with open("stock.json", "w") as handle:
        json.dump({k: v.tolist() for k, v in result.items()}, handle)
    return result


ANSWER = {
    "line": 16,
    "fix_line": 16,
    "outputs": {
        "movement": {"differ": 45},
        "net": {"differ": 8},
        "closing": {"differ": 0},
        "mean_level": {"differ": 0},
    },
    "why": "differences of uint16 levels wrap when the level falls",
}
