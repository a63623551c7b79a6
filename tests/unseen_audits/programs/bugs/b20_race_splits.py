"""Equally spaced timing mats on a marathon course and a runner's passing times."""
import numpy as np

COURSE_KM = 42.195


def make_inputs():
    pace = np.array([4.55, 5.10, 5.62, 6.05])
    return pace, 11


def mats(n):
    return np.linspace(0, COURSE_KM, n, dtype=int)


def run(pace, n):
    position = mats(n)
    passing = np.outer(pace, position)
    finish = pace * COURSE_KM
    gap = np.diff(finish)
    for p, f in zip(pace, finish):
        print(f"pace {p:.2f} min/km: finish {int(f // 60)}:{f % 60:05.2f}")
    return {
        "position_km": position,
        "passing_min": passing,
        "finish_min": finish,
        "finish_gap": gap,
    }


ANSWER = {
    "line": 13,
    "fix_line": 13,
    "outputs": {
        "position_km": {"differ": 10},
        "passing_min": {"differ": 40},
        "finish_min": {"differ": 0},
        "finish_gap": {"differ": 0},
    },
    "why": "dtype=int cuts the positions to whole kilometres",
}
