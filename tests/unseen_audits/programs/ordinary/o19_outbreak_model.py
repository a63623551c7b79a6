"""Outbreak in age groups: Runge-Kutta and stochastic runs, reproduction numbers, attack rates."""
import logging

import numpy as np

log = logging.getLogger(__name__)
GROUPS = ("children", "adults", "seniors")


def make_inputs():
    population = np.array([8_200, 24_500, 7_300], dtype=np.int64)
    contacts = np.array([
        [9.1, 3.2, 0.6],
        [3.1, 6.4, 1.1],
        [1.0, 2.6, 2.1],
    ])
    rates = {"transmission": 0.042, "latent_days": 3.2, "infectious_days": 5.0}
    fatality = np.array([0.0001, 0.002, 0.03])
    return population, contacts, rates, fatality, 160


def reciprocal(contacts, population):
    """Contacts made symmetric in total numbers."""
    total = contacts * population[:, None]
    return 0.5 * (total + total.T) / population[:, None]


def basic_reproduction(contacts, population, rates):
    share = population[:, None] / population[None, :]
    matrix = rates["transmission"] * rates["infectious_days"] * contacts * share
    values, vectors = np.linalg.eig(matrix)
    k = int(values.real.argmax())
    vector = np.abs(vectors[:, k].real)
    return float(values[k].real), vector / vector.sum()


def derivative(state, contacts, population, rates):
    s, e, i, _ = state
    force = rates["transmission"] * contacts @ (i / population)
    infection = force * s
    onset = e / rates["latent_days"]
    recovery = i / rates["infectious_days"]
    return np.stack([-infection, infection - onset, onset - recovery, recovery])


def integrate(state, days, contacts, population, rates, per_day=4):
    h = 1.0 / per_day
    path = np.empty((days + 1,) + state.shape)
    path[0] = state
    args = (contacts, population, rates)
    for day in range(1, days + 1):
        for _ in range(per_day):
            k1 = derivative(state, *args)
            k2 = derivative(state + 0.5 * h * k1, *args)
            k3 = derivative(state + 0.5 * h * k2, *args)
            k4 = derivative(state + h * k3, *args)
            state = state + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[day] = state
    return path


def stochastic(rng, population, seeds, days, contacts, rates):
    """Chain binomial model with whole persons."""
    s = population - seeds
    e = seeds.copy()
    i = np.zeros_like(seeds)
    leave_e = -np.expm1(-1.0 / rates["latent_days"])
    leave_i = -np.expm1(-1.0 / rates["infectious_days"])
    new_cases = np.zeros((days, population.size), dtype=np.int32)
    for day in range(days):
        force = rates["transmission"] * contacts @ (i / population)
        infected = rng.binomial(s, -np.expm1(-force))
        onset = rng.binomial(e, leave_e)
        recovered = rng.binomial(i, leave_i)
        s -= infected
        e += infected - onset
        i += onset - recovered
        new_cases[day] = infected
    return new_cases, s


def growth_rate(cases):
    """Slope of the log of weekly sums over the rising part."""
    weekly = cases[: cases.size // 7 * 7].reshape(-1, 7).sum(axis=1)
    rise = slice(2, int(weekly.argmax()))
    x = np.arange(weekly.size)[rise]
    slope, _ = np.polyfit(x, np.log(np.maximum(weekly[rise], 1)), 1)
    return float(slope / 7.0)


def effective_number(cases, mean_interval=6.0, sd=2.5, window=28):
    t = np.arange(1, window + 1)
    shape, scale = (mean_interval / sd) ** 2, sd**2 / mean_interval
    weight = t ** (shape - 1.0) * np.exp(-t / scale)
    weight /= weight.sum()
    pressure = np.convolve(cases, np.concatenate([[0.0], weight]))[: cases.size]
    return np.divide(cases, pressure, out=np.full(cases.size, np.nan), where=pressure > 1.0)


def run(population, contacts, rates, fatality, days):
    contacts = reciprocal(contacts, population)
    r0, distribution = basic_reproduction(contacts, population, rates)
    seeds = np.array([2, 6, 1], dtype=np.int64)
    zero = np.zeros(3)
    start = np.stack([population - seeds, seeds.astype(np.float64), zero, zero])
    path = integrate(start, days, contacts, population, rates)
    attack = 1.0 - path[-1, 0] / population
    runs = [stochastic(np.random.default_rng(k), population, seeds, days, contacts, rates) for k in range(5)]
    cases = np.stack([r[0] for r in runs])
    sizes = cases.sum(axis=(1, 2))
    curve = cases[0].sum(axis=1)
    deaths = (cases.sum(axis=1) * fatality).sum(axis=1)
    log.warning("runs with fewer than 100 cases: %d", int((sizes < 100).sum()))
    print(f"R0 {r0:.4f}, attack " + ", ".join(f"{g} {a:.2%}" for g, a in zip(GROUPS, attack)))
    print("sizes of the runs:", " ".join(map(str, sizes.tolist())))
    np.savetxt("mean_field.csv", path.sum(axis=2), fmt="%.4f", delimiter=",", header="S,E,I,R")
    return {"r0": r0, "distribution": distribution, "attack": attack, "peak_day": int(path[:, 2].sum(axis=1).argmax()),
            "sizes": sizes, "growth": growth_rate(curve), "effective": effective_number(curve), "deaths": deaths}
