"""End-to-end statistics of lattice walks; steps are -1, 0 or 1."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(300)
    drift = np.repeat([0.05, 0.35, 0.7], 2)
    steps = np.empty((6, 320), dtype=np.int8)
    for k, d in enumerate(drift):
        steps[k] = rng.choice([-1, 0, 1], size=320, p=[(1 - d) / 2 - 0.1, 0.2, (1 + d) / 2 - 0.1])
    return (steps,)


def run(steps):
    path = np.cumsum(steps, axis=1, dtype=np.int8)
    end = path[:, -1]
    reach = path.max(axis=1)
    returns = (path == 0).sum(axis=1)
    half = path[:, steps.shape[1] // 2]
    table = {"walk": [], "end": [], "half": [], "reach": [], "returns": []}
    for k in range(len(steps)):
        table["walk"].append(k)
        table["end"].append(end[k].item())
        table["half"].append(half[k].item())
        table["reach"].append(reach[k].item())
        table["returns"].append(returns[k].item())
    msd = np.mean(end.astype(float) ** 2)
    return table, msd


def exact(steps):
    end, half, reach, ret = [], [], [], []
    for row in steps.tolist():
        s, p = 0, []
        for v in row:
            s += v
            p.append(s)
        end.append(s)
        half.append(p[len(row) // 2])
        reach.append(max(p))
        ret.append(p.count(0))
    return end, half, reach, ret, [sum(e * e for e in end) / len(end)]


ANSWER = {
    "line": 15,
    "kind": "wrap",
    "operation": "np.cumsum carried in int8 (dtype=np.int8) wraps beyond 127",
    "outputs": {
        "end (dict entry)": {"size": 6, "differ": 3},
        "half (dict entry)": {"size": 6, "differ": 0},
        "reach (dict entry)": {"size": 6, "differ": 3},
        "returns (dict entry)": {"size": 6, "differ": 0},
        "msd (returned, second)": {"size": 1, "differ": 1},
    },
    "fix": "path = np.cumsum(steps, axis=1, dtype=np.int64)",
}
