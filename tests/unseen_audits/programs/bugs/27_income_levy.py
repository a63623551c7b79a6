import numpy as np

BRACKETS = [(12_000, 0.2), (48_000, 0.4), (125_000, 0.45)]


def make_inputs():
    rng = np.random.default_rng(1799)
    income = np.round(rng.lognormal(10.3, 0.7, size=150), 2)
    income[0] = 9_350.0            # a student
    children = rng.integers(0, 4, size=150)
    return income, children


def levy(amount):
    if amount <= BRACKETS[0][0]:
        return 0
    due = 0.0
    tops = [b[0] for b in BRACKETS[1:]] + [float("inf")]
    for (low, rate), top in zip(BRACKETS, tops):
        if amount > low:
            due += (min(amount, top) - low) * rate
    return due


def run(income, children):
    levied = np.vectorize(levy)
    due = levied(income)
    relief = 180.0 * children
    net = income - np.maximum(due - relief, 0.0)
    bands = np.histogram(net, bins=[0, 15e3, 30e3, 60e3, 1e6])[0]
    return {"due": due, "net": net, "bands": bands, "revenue": np.sum(income - net)}


def exact(income, children):
    dues, nets = [], []
    for a, c in zip(income.tolist(), children.tolist()):
        d = float(levy(a))
        dues.append(d)
        nets.append(a - max(d - 180.0 * c, 0.0))
    edges = [0, 15e3, 30e3, 60e3, 1e6]
    bands = [sum(lo <= v < hi for v in nets) for lo, hi in zip(edges, edges[1:])]
    return dues, nets, bands, [sum(income.tolist()) - sum(nets)]


ANSWER = {
    "line": 27,
    "kind": "truncation",
    "operation": "np.vectorize takes its output dtype (int64) from the first call, which returns the int 0; the later floats are truncated",
    "outputs": {
        "due (dict entry)": {"size": 150, "differ": 131},
        "net (dict entry)": {"size": 150, "differ": 121},
        "bands (dict entry)": {"size": 4, "differ": 0},
        "revenue (dict entry)": {"size": 1, "differ": 1},
    },
    "fix_line": 26,
    "fix": "levied = np.vectorize(levy, otypes=[float])",
}
