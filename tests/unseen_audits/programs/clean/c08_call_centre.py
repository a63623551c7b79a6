"""Calls by hour of the day, time to answer and total talking time."""
import numpy as np

HOUR = np.timedelta64(1, "h")
SECOND = np.timedelta64(1, "s")


def make_inputs():
    rng = np.random.default_rng(308)
    start = np.datetime64("2023-11-06T07:00:00.000")
    arrived = np.sort(start + rng.integers(0, 12 * 3600 * 1000, 90).astype("m8[ms]"))
    answered = arrived + rng.integers(800, 95_000, 90).astype("m8[ms]")
    ended = answered + rng.integers(20_000, 900_000, 90).astype("m8[ms]")
    return arrived, answered, ended


def run(arrived, answered, ended):
    midnight = arrived.astype("M8[D]")
    hour = (arrived - midnight) // HOUR
    per_hour = np.bincount(hour, minlength=24)
    wait = (answered - arrived) / SECOND
    talk = (ended - answered).sum()
    open_calls = np.searchsorted(np.sort(ended), arrived, side="right")
    queue = np.arange(arrived.size) - open_calls
    print(f"busiest hour {per_hour.argmax()}:00, talking time {talk}")
    return {
        "per_hour": per_hour,
        "wait_s": wait,
        "talk_ms": talk.astype(np.int64),
        "in_system": queue,
        "answered_in_20s": float(np.mean(wait <= 20.0)),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "per_hour": {"differ": 0},
        "wait_s": {"differ": 0},
        "talk_ms": {"differ": 0},
        "in_system": {"differ": 0},
        "answered_in_20s": {"differ": 0},
    },
    "why": "hours are a floor division by intent, the rest stays in milliseconds",
}
