import numpy as np

RATE = 2.4        # per hour, charged by the minute
DAY_CAP = 18.0


def make_inputs():
    rng = np.random.default_rng(3)
    n = 26
    enter = np.datetime64("2024-03-08T06:00") + rng.integers(0, 900, n).astype("timedelta64[m]")
    stay = rng.integers(4, 620, n)
    stay[[3, 9, 17]] = [60, 120, 300]
    leave = enter + stay.astype("timedelta64[m]")
    return enter, leave


def run(enter, leave):
    if np.isnat(enter).any() or (leave < enter).any():
        raise ValueError("bad gate log")
    order = np.argsort(enter)
    enter, leave = enter[order], leave[order]

    hours = (leave - enter).astype("timedelta64[h]").astype(float)
    fee = np.minimum(hours * RATE, DAY_CAP)

    for i in range(len(enter)):
        print(f"{enter[i]}  {hours[i]:8.4f} h  {fee[i]:7.3f}")
    print(f"cars {len(fee)}  revenue {fee.sum():.3f}  at cap {(fee == DAY_CAP).sum()}")


def exact(enter, leave):
    rows = sorted(zip(enter.astype("int64").tolist(), leave.astype("int64").tolist()),
                  key=lambda r: r[0])
    h = [(b - a) / 60 for a, b in rows]
    fee = [min(v * RATE, DAY_CAP) for v in h]
    return ([round(v, 4) for v in h], [round(v, 3) for v in fee], len(fee),
            [round(sum(fee), 3)], sum(1 for v in fee if v == DAY_CAP))


ANSWER = {
    "line": 23,
    "kind": "unit",
    "operation": "timedelta64[m] -> timedelta64[h] truncates to whole hours",
    "outputs": {
        "hours (printed column)": {"size": 26, "differ": 23},
        "fee (printed column)": {"size": 26, "differ": 17},
        "cars (printed)": {"size": 1, "differ": 0},
        "revenue (printed)": {"size": 1, "differ": 1},
        "at cap (printed)": {"size": 1, "differ": 1},
    },
    "fix": 'hours = (leave - enter) / np.timedelta64(1, "h")',
}
