"""Visits per month and per weekday from daily uint8 counts."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(365)
    days = np.datetime64("2022-12-20") + np.arange(420)
    visits = np.clip(rng.poisson(90 + 60 * (rng.random(420) < 0.2)), 0, 255).astype(np.uint8)
    return days, visits


def run(days, visits):
    month = days.astype("datetime64[M]")
    labels, inverse = np.unique(month, return_inverse=True)
    monthly = np.zeros(labels.size, dtype=np.int64)
    np.add.at(monthly, inverse, visits)

    weekday = (days.astype("datetime64[D]").astype(np.int64) + 3) % 7
    by_day = np.array([visits[weekday == d].sum() for d in range(7)])
    mean = visits.mean()
    running = np.cumsum(visits)

    with open("visits.txt", "w") as f:
        for m, v in zip(labels, monthly):
            f.write(f"{m} {v}\n")
    busiest = str(labels[monthly.argmax()])
    print(busiest, f"{mean:.9f}")
    return by_day.tolist(), running


def exact(days, visits):
    import datetime
    d = [datetime.date.fromisoformat(str(x)) for x in days]
    v = visits.tolist()
    wk, mon, run_, s = [0] * 7, {}, [], 0
    for x, n in zip(d, v):
        wk[x.weekday()] += n
        key = f"{x.year}-{x.month:02d}"
        mon[key] = mon.get(key, 0) + n
        s += n
        run_.append(s)
    return wk, run_, list(mon.values()), max(mon, key=mon.get), [round(s / len(v), 9)]


ANSWER = {
    "outputs": {
        "by_day (returned, list)": {"size": 7, "differ": 0},
        "running (returned)": {"size": 420, "differ": 0},
        "visits.txt counts": {"size": 15, "differ": 0},
        "busiest month (printed)": {"size": 1, "differ": 0},
        "mean (printed)": {"size": 1, "differ": 0},
    },
    "note": "sum and cumsum of uint8 promote to uint64, add.at adds into int64; datetime64[D] -> [M] truncates on purpose",
}
