"""Parking garage: hours stayed and fees charged from entry and exit times."""
import numpy as np

RATE = {"car": 2.40, "van": 3.75}


def make_inputs():
    rng = np.random.default_rng(99)
    n = 30
    entry = np.datetime64("2024-03-08T06:00:00") + rng.integers(0, 40000, n).astype("m8[s]")
    stay = rng.integers(10, 600, n)
    stay[::6] = 60 * rng.integers(1, 8, stay[::6].size)
    leave = entry + stay.astype("m8[m]")
    kind = np.where(rng.random(n) < 0.2, "van", "car")
    return entry, leave, kind


def run(entry, leave, kind):
    stay = leave - entry
    hours = stay.astype("timedelta64[h]").astype(float)
    rate = np.array([RATE[k] for k in kind])
    fee = hours * rate
    longest = int(np.argmax(stay))
    print(f"longest stay: vehicle {longest}, {stay[longest]}")
    return {
        "hours": hours,
        "fee": fee,
        "takings": fee.sum(),
        "longest": longest,
        "n_vans": int((kind == "van").sum()),
    }


ANSWER = {
    "line": 20,
    "fix_line": 20,
    "outputs": {
        "hours": {"differ": 25},
        "fee": {"differ": 25},
        "takings": {"differ": 1},
        "longest": {"differ": 0},
        "n_vans": {"differ": 0},
    },
    "why": "the cast to whole hours drops the minutes",
}
