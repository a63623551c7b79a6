"""Price a small option book by Monte Carlo with antithetic paths and a control variate.

European, Asian and barrier payoffs are valued along the same simulated paths; the European values are
compared with the Black-Scholes formula, and profit and loss quantiles of the book are printed.
"""
# outputs: 33
# (3 returned, 20 numbers printed, 0 arrays written, 10 numbers written in text)
from dataclasses import dataclass
from math import erf, exp, log, sqrt

import numpy as np


@dataclass(frozen=True)
class Market:
    spot: float = 100.0
    rate: float = 0.03
    vol: float = 0.22
    horizon: float = 0.75
    steps: int = 39


def normal_cdf(x):
    return 0.5 * (1.0 + erf(x / sqrt(2.0)))


def black_scholes(m, strike, call=True):
    d1 = (log(m.spot / strike) + (m.rate + 0.5 * m.vol ** 2) * m.horizon) / (m.vol * sqrt(m.horizon))
    d2 = d1 - m.vol * sqrt(m.horizon)
    sign = 1 if call else -1
    price = sign * (m.spot * normal_cdf(sign * d1) - strike * exp(-m.rate * m.horizon) * normal_cdf(sign * d2))
    delta = sign * normal_cdf(sign * d1)
    return price, delta


def paths(m, n_pairs, rng):
    z = rng.standard_normal((n_pairs, m.steps))
    z = np.concatenate([z, -z])
    dt = m.horizon / m.steps
    increments = (m.rate - 0.5 * m.vol ** 2) * dt + m.vol * np.sqrt(dt) * z
    log_path = np.cumsum(increments, axis=1)
    return m.spot * np.exp(np.pad(log_path, ((0, 0), (1, 0))))


def payoffs(s, m):
    last = s[:, -1]
    average = s[:, 1:].mean(axis=1)
    knocked = s.min(axis=1) <= 85.0
    return {
        "call": np.maximum(last - 105.0, 0.0),
        "put": np.maximum(95.0 - last, 0.0),
        "asian": np.maximum(average - 100.0, 0.0),
        "barrier": np.where(knocked, 0.0, np.maximum(last - 100.0, 0.0)),
        "digital": (last > 110.0).astype(np.float64) * 10.0,
    }


def estimate(sample, control, control_mean, discount):
    """Mean and standard error with the terminal price as control variate, pairs averaged first."""
    half = len(sample) // 2
    y = 0.5 * (sample[:half] + sample[half:])
    c = 0.5 * (control[:half] + control[half:])
    cov = np.cov(y, c)
    beta = cov[0, 1] / cov[1, 1]
    adjusted = y - beta * (c - control_mean)
    return discount * adjusted.mean(), discount * adjusted.std(ddof=1) / np.sqrt(half)


def implied_vol(m, price, strike):
    grid = np.linspace(0.05, 0.6, 56)
    values = np.array([black_scholes(Market(vol=v), strike)[0] for v in grid])
    return np.interp(price, values, grid)


def main():
    m = Market()
    rng = np.random.default_rng(1973)
    s = paths(m, 60, rng)
    discount = exp(-m.rate * m.horizon)
    forward = m.spot / discount
    pay = payoffs(s, m)

    position = np.array([-10, 5, 8, 12, -20])
    prices = np.empty(len(pay))
    errors = np.empty(len(pay))
    print(f"{'payoff':<10s}{'price':>10s}{'error':>10s}")
    for k, (name, sample) in enumerate(pay.items()):
        prices[k], errors[k] = estimate(sample, s[:, -1], forward, discount)
        print(f"{name:<10s}{prices[k]:10.4f}{errors[k]:10.4f}")

    call, call_delta = black_scholes(m, 105.0)
    put, put_delta = black_scholes(m, 95.0, call=False)
    print(f"closed form: call {call:.4f} put {put:.4f} deltas {call_delta:.4f} {put_delta:.4f}")
    print("implied volatility of the simulated call:", round(float(implied_vol(m, prices[0], 105.0)), 4))

    matrix = np.array(list(pay.values()))
    pnl = position @ (discount * matrix - prices[:, None])
    q = np.quantile(pnl, [0.01, 0.05, 0.5, 0.95])
    shortfall = pnl[pnl <= q[1]].mean()
    print("quantiles", *np.round(q, 3), "expected shortfall", round(shortfall, 3))

    with open("book.csv", "w") as f:
        f.write("name,position,price\n")
        for name, n, p in zip(pay, position, prices):
            f.write(f"{name},{n},{p:.6f}\n")
    return prices, errors, np.corrcoef(matrix)


if __name__ == "__main__":
    main()
