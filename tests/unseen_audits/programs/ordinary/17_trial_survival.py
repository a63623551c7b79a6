"""Survival analysis of a two-arm clinical trial.

Kaplan-Meier curves with Greenwood errors, the log-rank test, a Cox model with two covariates by Newton's
method, a bootstrap interval for the difference of median survival, and a table of numbers at risk.
"""
# outputs: 42
# (3 returned, 37 numbers printed, 2 arrays written)
import numpy as np


def cohort(n, rng):
    arm = (np.arange(n) % 2).astype(np.int8)
    age = rng.normal(61, 9, n).round().astype(np.int16)
    hazard = 0.055 * np.exp(-0.55 * arm + 0.03 * (age - 61))
    event_time = rng.exponential(1 / hazard)
    censor = rng.uniform(6, 40, n)
    time = np.ceil(np.minimum(event_time, censor) * 4) / 4         # visits every week or so
    event = event_time <= censor
    return time, event, arm, age


def kaplan_meier(time, event):
    t = np.unique(time[event])
    ordered = np.sort(time)
    at_risk = time.size - np.searchsorted(ordered, t, side="left")
    deaths = np.searchsorted(np.sort(time[event]), t, side="right")
    deaths = np.diff(np.concatenate(([0], deaths)))
    s = np.cumprod(1.0 - deaths / at_risk)
    with np.errstate(divide="ignore"):
        term = deaths / (at_risk * (at_risk - deaths)).astype(float)
    error = s * np.sqrt(np.cumsum(np.where(np.isfinite(term), term, 0.0)))
    return t, s, error


def median_survival(time, event):
    t, s, _ = kaplan_meier(time, event)
    below = np.flatnonzero(s <= 0.5)
    return t[below[0]] if below.size else np.nan


def log_rank(time, event, group):
    times = np.unique(time[event])
    risk = time[None, :] >= times[:, None]
    die = (time[None, :] == times[:, None]) & event
    n = risk.sum(axis=1)
    n1 = (risk & (group == 1)).sum(axis=1)
    d = die.sum(axis=1)
    d1 = (die & (group == 1)).sum(axis=1)
    expected = d * n1 / n
    several = n > 1
    var = (d * (n1 / n) * (1 - n1 / n) * (n - d))[several] / (n[several] - 1)
    z = (d1 - expected).sum() / np.sqrt(var.sum())
    return z, d1.sum(), expected.sum()


def cox(time, event, x, rounds=12):
    beta = np.zeros(x.shape[1])
    order = np.argsort(-time, kind="stable")
    time, event, x = time[order], event[order], x[order]
    # last index with the same time: ties by Breslow
    last = np.searchsorted(-time, -time, side="right") - 1
    for it in range(rounds):
        w = np.exp(x @ beta)
        s0 = np.cumsum(w)[last]
        s1 = np.cumsum(w[:, None] * x, axis=0)[last]
        s2 = np.cumsum(w[:, None, None] * np.einsum("ni,nj->nij", x, x), axis=0)[last]
        mean = s1 / s0[:, None]
        gradient = (x - mean)[event].sum(axis=0)
        info = (s2 / s0[:, None, None] - np.einsum("ni,nj->nij", mean, mean))[event].sum(axis=0)
        step = np.linalg.solve(info, gradient)
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    return beta, np.sqrt(np.diag(np.linalg.inv(info))), it + 1


def main():
    rng = np.random.default_rng(1958)
    time, event, arm, age = cohort(80, rng)
    print("patients", time.size, "events", event.sum(), "censored", (~event).sum())

    checkpoints = np.array([0, 6, 12, 18, 24, 30])
    for a, name in enumerate(("control", "treated")):
        mine = arm == a
        t, s, e = kaplan_meier(time[mine], event[mine])
        where = np.searchsorted(t, checkpoints, side="right") - 1
        surv = np.where(where >= 0, s[where], 1.0)
        risk = (time[mine][None, :] >= checkpoints[:, None]).sum(axis=1)
        print(name, "median", median_survival(time[mine], event[mine]))
        print("  at risk ", *(f"{v:6d}" for v in risk))
        print("  survival", *(f"{v:6.3f}" for v in surv))
        np.savetxt(f"km_{name}.txt", np.column_stack([t, s, e]), fmt="%.6f")

    z, observed, expected = log_rank(time, event, arm)
    print(f"log-rank z {z:.4f}: observed {observed}, expected {expected:.3f}")
    covariates = np.column_stack([arm, (age - age.mean()) / 10])
    beta, se, rounds = cox(time, event, covariates)
    print(f"hazard ratios {np.exp(beta[0]):.4f} {np.exp(beta[1]):.4f} after {rounds} rounds")

    boot = np.empty(120)
    idx0, idx1 = np.flatnonzero(arm == 0), np.flatnonzero(arm == 1)
    for b in range(boot.size):
        i = rng.choice(idx0, idx0.size)
        j = rng.choice(idx1, idx1.size)
        boot[b] = median_survival(time[j], event[j]) - median_survival(time[i], event[i])
    low, high = np.nanpercentile(boot, [2.5, 97.5])
    print("difference of medians between", low, "and", high)
    return beta, se, boot


if __name__ == "__main__":
    main()
