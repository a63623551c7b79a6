"""Survey weighting: raking to known margins, weighted quantiles, design effect, jackknife."""
import numpy as np

AGE_GROUPS = ("18-29", "30-44", "45-64", "65+")
REGIONS = ("north", "middle", "south")


def make_inputs():
    rng = np.random.default_rng(1010)
    n = 480
    people = np.zeros(n, dtype=[("age", "i1"), ("region", "i1"), ("woman", "?"), ("income", "f8"), ("vote", "i1")])
    people["age"] = rng.choice(4, size=n, p=[0.14, 0.22, 0.36, 0.28])
    people["region"] = rng.choice(3, size=n, p=[0.5, 0.2, 0.3])
    people["woman"] = rng.random(n) < 0.55
    people["income"] = np.round(rng.lognormal(8.1 + 0.12 * (people["age"] == 2), 0.45), -1)
    people["vote"] = rng.choice(4, size=n, p=[0.3, 0.28, 0.24, 0.18])
    margins = {
        "age": np.array([0.19, 0.25, 0.33, 0.23]),
        "region": np.array([0.42, 0.25, 0.33]),
        "woman": np.array([0.49, 0.51]),
    }
    return people, margins, 6_200_000


def rake(people, margins, total, rounds=60, tol=1e-10):
    weight = np.full(len(people), total / len(people))
    for step in range(1, rounds + 1):
        worst = 0.0
        for name, share in margins.items():
            group = people[name].astype(np.intp)
            have = np.bincount(group, weights=weight, minlength=share.size)
            factor = share * total / have
            worst = max(worst, float(np.abs(factor - 1.0).max()))
            weight = weight * factor[group]
        if worst < tol:
            break
    return weight, step


def weighted_quantile(values, weight, q):
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    position = (cumulative - 0.5 * weight[order]) / cumulative[-1]
    return np.interp(q, position, values[order])


def design_effect(weight):
    return weight.size * np.square(weight).sum() / weight.sum() ** 2


def weighted_shares(category, weight, n):
    return np.bincount(category, weights=weight, minlength=n) / weight.sum()


def cross_table(people, weight):
    table = np.zeros((len(AGE_GROUPS), len(REGIONS)))
    np.add.at(table, (people["age"], people["region"]), weight)
    return table


def gini(values, weight):
    order = np.argsort(values)
    w = weight[order] / weight.sum()
    share = np.cumsum(values[order] * w)
    share = np.concatenate([[0.0], share / share[-1]])
    return float(1.0 - np.sum(w * (share[1:] + share[:-1])))


def jackknife(values, weight, groups=12):
    """Standard error of the weighted mean, groups of respondents left out in turn."""
    member = np.arange(values.size) % groups
    estimates = np.empty(groups)
    for g in range(groups):
        keep = member != g
        estimates[g] = np.average(values[keep], weights=weight[keep])
    spread = np.sum((estimates - estimates.mean()) ** 2)
    return np.sqrt((groups - 1) / groups * spread), estimates


def chi_square(table):
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum())


def run(people, margins, total):
    weight, rounds = rake(people, margins, total)
    deff = design_effect(weight)
    income = people["income"]
    quartiles = weighted_quantile(income, weight, [0.25, 0.5, 0.75])
    shares = weighted_shares(people["vote"], weight, 4)
    error, parts = jackknife(income, weight)
    table = cross_table(people, weight)
    raw = np.bincount(people["vote"], minlength=4)
    print("raked in %d rounds, design effect %.3f, effective n %.1f" % (rounds, deff, len(people) / deff))
    for group, row in zip(AGE_GROUPS, table):
        print(f"{group:>6s} " + " ".join(f"{v:>12,.0f}" for v in row))
    with np.printoptions(precision=4, suppress=True):
        print("shares", shares)
    return {
        "weight": weight.astype(np.float32),
        "design_effect": deff,
        "quartiles": quartiles,
        "shares": shares,
        "raw_votes": raw,
        "standard_error": error,
        "jackknife": parts,
        "table": table,
        "gini": gini(income, weight),
        "chi_square": chi_square(table / total * len(people)),
        "women": float(np.average(people["woman"], weights=weight)),
    }
