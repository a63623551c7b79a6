"""Smoothed and crude disease rates of districts per 100 000 inhabitants."""
import numpy as np

PER = 100_000


def make_inputs():
    rng = np.random.default_rng(17)
    population = rng.integers(8_000, 90_000, size=22)
    cases = rng.poisson(population * 6e-5)
    return cases, population


def smooth_rates(cases, population, added=0.5):
    pseudo = np.full_like(cases, added)
    return PER * (cases + pseudo) / (population + 1)


def run(cases, population):
    crude = PER * cases / population
    smoothed = smooth_rates(cases, population)
    overall = PER * cases.sum() / population.sum()
    worst = int(np.argmax(crude))
    print("overall %.3f, worst district %d with %.2f" % (overall, worst, crude[worst]))
    return {
        "crude": crude,
        "smoothed": smoothed,
        "mean_smoothed": smoothed.mean(),
        "overall": overall,
        "worst": worst,
    }


ANSWER = {
    "line": 15,
    "fix_line": 15,
    "outputs": {
        "crude": {"differ": 0},
        "smoothed": {"differ": 22},
        "mean_smoothed": {"differ": 1},
        "overall": {"differ": 0},
        "worst": {"differ": 0},
    },
    "why": "full_like takes the integer dtype of cases, so 0.5 becomes 0",
}
