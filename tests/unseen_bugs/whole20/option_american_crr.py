"""American put options on Cox-Ross-Rubinstein trees: price and delta of a book.

Application: option pricing; one binomial tree an option, all options at once, backward induction with early exercise.
Public code with such a loop: QuantLib's binomial engines, and NumPy trees such as
https://github.com/TheQuantPy/youtube-tutorials (binomial American options).
"""
import numpy as np

TOLERANCE = 1e-9


def crr_parameters(r, sigma, dt):
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    disc = np.exp(-r * dt)
    p = (1 / disc - d) / (u - d)
    return u, d, disc * p, disc * (1 - p)


def main(spot, strike, rate, sigma, maturity, steps=200):
    dt = maturity / steps
    u, d, pu, pd = (v[:, None] for v in crr_parameters(rate, sigma, dt))
    k = strike[:, None]
    j = np.arange(steps + 1)
    s = spot[:, None] * u ** (2 * j - steps)
    v = np.maximum(k - s, 0.0)
    delta = None
    for i in range(steps - 1, -1, -1):
        if i == 0:
            delta = (v[:, 1] - v[:, 0]) / (s[:, 1] - s[:, 0])
        s = s[:, 1:] * d
        v = pu * v[:, 1:] + pd * v[:, :-1]
        v = np.maximum(v, k - s)
    return v[:, 0], delta


def inputs(rng):
    n = 128
    spot = rng.uniform(80, 120, n)
    strike = np.round(spot * rng.uniform(0.8, 1.2, n))
    return spot, strike, rng.uniform(0.01, 0.06, n), rng.uniform(0.1, 0.6, n), rng.uniform(0.1, 2.0, n)


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(spot, strike, rate, sigma, maturity, steps=200):
    dt = maturity / steps
    u = jnp.exp(sigma * jnp.sqrt(dt))[:, None]
    d = 1 / u
    disc = jnp.exp(-rate * dt)[:, None]
    p = (1 / disc - d) / (u - d)
    pu, pd = disc * p, disc * (1 - p)
    k = strike[:, None]
    s = spot[:, None] * u ** (2 * jnp.arange(steps + 1) - steps)

    def back(_, state):  # fixed width: the columns past the level are not used
        s, v = state
        s_up = jnp.concatenate([s[:, 1:], s[:, -1:]], axis=1)
        v_up = jnp.concatenate([v[:, 1:], v[:, -1:]], axis=1)
        s = s_up * d
        return s, jnp.maximum(pu * v_up + pd * v, k - s)

    s, v = lax.fori_loop(0, steps - 1, back, (s, jnp.maximum(k - s, 0.0)))
    delta = (v[:, 1] - v[:, 0]) / (s[:, 1] - s[:, 0])
    _, v = back(0, (s, v))
    return v[:, 0], delta


try:
    import torch
except ImportError:
    pass


def _torch_back(s, v, k, d, pu, pd):
    s = torch.cat([s[:, 1:], s[:, -1:]], 1) * d
    v = pu * torch.cat([v[:, 1:], v[:, -1:]], 1) + pd * v
    return s, torch.maximum(v, k - s)


def torch_main(spot, strike, rate, sigma, maturity, steps=200):
    dt = maturity / steps
    u = torch.exp(sigma * torch.sqrt(dt))[:, None]
    d = 1 / u
    disc = torch.exp(-rate * dt)[:, None]
    p = (1 / disc - d) / (u - d)
    pu, pd = disc * p, disc * (1 - p)
    k = strike[:, None]
    s = spot[:, None] * u ** (2 * torch.arange(steps + 1) - steps)
    v = (k - s).clamp(min=0)
    for _ in range(steps - 1):
        torch._dynamo.graph_break()  # compile the step, keep the loop in Python
        s, v = _torch_back(s, v, k, d, pu, pd)
    delta = (v[:, 1] - v[:, 0]) / (s[:, 1] - s[:, 0])
    _, v = _torch_back(s, v, k, d, pu, pd)
    return v[:, 0], delta


def numba_main(spot, strike, rate, sigma, maturity, steps=200):
    n = len(spot)
    price = np.empty(n)
    delta = np.empty(n)
    s = np.empty(steps + 1)
    v = np.empty(steps + 1)
    for o in range(n):
        dt = maturity[o] / steps
        u = np.exp(sigma[o] * np.sqrt(dt))
        d = 1 / u
        disc = np.exp(-rate[o] * dt)
        p = (1 / disc - d) / (u - d)
        pu, pd = disc * p, disc * (1 - p)
        k = strike[o]
        for j in range(steps + 1):
            s[j] = spot[o] * u ** (2 * j - steps)
            v[j] = max(k - s[j], 0.0)
        for i in range(steps - 1, -1, -1):
            if i == 0:
                delta[o] = (v[1] - v[0]) / (s[1] - s[0])
            for j in range(i + 1):
                s[j] = s[j + 1] * d
                v[j] = max(pu * v[j + 1] + pd * v[j], k - s[j])
        price[o] = v[0]
    return price, delta
