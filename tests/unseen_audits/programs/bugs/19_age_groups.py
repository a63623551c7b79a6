"""Participants per age decade of a cohort; unknown ages are NaN."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(1948)
    age = np.clip(rng.normal(47, 19, 500), 1, 98).round(1)
    age[rng.choice(500, 37, replace=False)] = np.nan
    smoker = rng.random(500) < 0.24
    return age, smoker


def run(age, smoker):
    age = np.asarray(age, dtype=float)
    if np.nanmin(age) < 0:
        raise ValueError("negative age")

    decade = np.clip((age // 10).astype(int), 0, 9)
    people = np.bincount(decade, minlength=10)
    share = people / people.sum()

    mean_age = np.nanmean(age)
    smoking = smoker.mean()

    width = 40
    for d in range(10):
        bar = "#" * int(round(width * share[d]))
        print(f"{10 * d:3d}-{10 * d + 9:<3d} {people[d]:5d} {bar}")
    return people, share, mean_age, smoking


def exact(age, smoker):
    import math
    people = [0] * 10
    known = [float(a) for a in age if not math.isnan(a)]
    for a in known:
        people[min(int(a // 10), 9)] += 1
    return (people, [p / len(known) for p in people], [math.fsum(known) / len(known)],
            [sum(map(int, smoker)) / len(smoker)], people)


ANSWER = {
    "line": 18,
    "kind": "nan to int",
    "operation": "NaN cast from float64 to int64 becomes -2**63, which the clip turns into group 0",
    "outputs": {
        "people (returned, first)": {"size": 10, "differ": 1},
        "share (returned, second)": {"size": 10, "differ": 10},
        "mean_age (returned, third)": {"size": 1, "differ": 0},
        "smoking (returned, fourth)": {"size": 1, "differ": 0},
        "people (printed column)": {"size": 10, "differ": 1},
    },
    "fix": "decade = np.clip((age[~np.isnan(age)] // 10).astype(int), 0, 9)",
}
