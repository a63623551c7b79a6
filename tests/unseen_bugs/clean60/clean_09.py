"""Monte Carlo price of European calls with antithetic draws, with standard errors."""
import numpy as np

RATE = 0.03
SIGMA = 0.2
T = 1.0
PATHS = 4000


def main(spot, strikes):
    rng = np.random.default_rng(12345)
    z = rng.standard_normal(PATHS)
    z = np.concatenate([z, -z])
    drift = (RATE - 0.5 * SIGMA ** 2) * T
    growth = np.exp(drift + SIGMA * np.sqrt(T) * z)
    terminal = spot[:, None] * growth[None, :]
    payoff = np.maximum(terminal[:, None, :] - strikes[None, :, None], 0.0)
    disc = np.exp(-RATE * T) * payoff
    # one antithetic pair is one independent sample
    pairs = 0.5 * (disc[..., :PATHS] + disc[..., PATHS:])
    price = pairs.mean(axis=-1)
    stderr = pairs.std(axis=-1, ddof=1) / np.sqrt(PATHS)
    in_the_money = np.count_nonzero(payoff > 0, axis=-1) / payoff.shape[-1]
    return price, stderr, in_the_money


def inputs():
    return np.array([95.0, 100.0, 105.0]), np.array([90.0, 100.0, 110.0, 120.0])
