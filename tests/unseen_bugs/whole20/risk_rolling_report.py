"""Rolling risk report of a stock universe: volatility, beta, drawdown, historical VaR and expected shortfall.

Application: portfolio analytics.  Log returns of daily prices; rolling volatility and beta against the weighted market
by cumulative sums; maximum drawdown; 5 % VaR and ES by sorting.
Public code with such a loop: empyrical (https://github.com/quantopian/empyrical), pyfolio, quantstats.
"""
import numpy as np

TOLERANCE = 1e-7


def rolling_mean(x, window):
    c = np.cumsum(x, axis=0)
    c[window:] = c[window:] - c[:-window]
    return c[window - 1:] / window


def max_drawdown(prices):
    peak = np.maximum.accumulate(prices, axis=0)
    return (prices / peak - 1).min(axis=0)


def main(prices, weights, window=60, level=0.05):
    ret = np.diff(np.log(prices), axis=0)
    market = ret @ weights
    mean = rolling_mean(ret, window)
    mean_m = rolling_mean(market, window)[:, None]
    var = rolling_mean(ret ** 2, window) - mean ** 2
    var_m = rolling_mean(market ** 2, window)[:, None] - mean_m ** 2
    cov = rolling_mean(ret * market[:, None], window) - mean * mean_m
    vol = np.sqrt(252 * np.maximum(var, 0))
    beta = cov / var_m
    ordered = np.sort(ret, axis=0)
    k = int(level * len(ret))
    return vol, beta, max_drawdown(prices), -ordered[k], -ordered[:k].mean(axis=0)


def inputs(rng):
    days, n = 1001, 80
    market = 0.01 * rng.standard_normal((days, 1))
    r = 0.0003 + market * rng.uniform(0.5, 1.6, n) + 0.015 * rng.standard_t(4, (days, n))
    weights = rng.random(n)
    return 100 * np.exp(np.cumsum(r, axis=0)), weights / weights.sum()


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(prices, weights, window=60, level=0.05):
    def rolling(x):
        c = jnp.cumsum(x, axis=0)
        return jnp.concatenate([c[window - 1:window], c[window:] - c[:-window]]) / window

    ret = jnp.diff(jnp.log(prices), axis=0)
    market = ret @ weights
    mean, mean_m = rolling(ret), rolling(market)[:, None]
    var = rolling(ret ** 2) - mean ** 2
    var_m = rolling(market ** 2)[:, None] - mean_m ** 2
    cov = rolling(ret * market[:, None]) - mean * mean_m
    ordered = jnp.sort(ret, axis=0)
    k = int(level * len(ret))
    drawdown = (prices / lax.cummax(prices, axis=0) - 1).min(axis=0)
    return jnp.sqrt(252 * jnp.maximum(var, 0)), cov / var_m, drawdown, -ordered[k], -ordered[:k].mean(axis=0)


try:
    import torch
except ImportError:
    pass


def torch_main(prices, weights, window=60, level=0.05):
    def rolling(x):
        c = torch.cumsum(x, 0)
        return torch.cat([c[window - 1:window], c[window:] - c[:-window]]) / window

    ret = torch.diff(torch.log(prices), dim=0)
    market = ret @ weights
    mean, mean_m = rolling(ret), rolling(market)[:, None]
    var = rolling(ret ** 2) - mean ** 2
    var_m = rolling(market ** 2)[:, None] - mean_m ** 2
    cov = rolling(ret * market[:, None]) - mean * mean_m
    k = int(level * ret.shape[0])
    low = torch.topk(ret, k + 1, dim=0, largest=False, sorted=True).values
    drawdown = (prices / torch.cummax(prices, 0).values - 1).amin(0)
    return torch.sqrt(252 * var.clamp(min=0)), cov / var_m, drawdown, -low[k], -low[:k].mean(0)


def numba_main(prices, weights, window=60, level=0.05):
    days, n = prices.shape
    m = days - 1
    ret = np.empty((n, m))
    market = np.zeros(m)
    for a in range(n):
        last = np.log(prices[0, a])
        for t in range(m):
            cur = np.log(prices[t + 1, a])
            ret[a, t] = cur - last
            market[t] += ret[a, t] * weights[a]
            last = cur
    rows = m - window + 1
    vol = np.empty((rows, n))
    beta = np.empty((rows, n))
    drawdown = np.empty(n)
    value_at_risk = np.empty(n)
    shortfall = np.empty(n)
    k = int(level * m)
    for a in range(n):
        s = s2 = sm = sm2 = sx = 0.0
        for t in range(m):
            r, q = ret[a, t], market[t]
            s += r
            s2 += r * r
            sm += q
            sm2 += q * q
            sx += r * q
            if t >= window:
                r, q = ret[a, t - window], market[t - window]
                s -= r
                s2 -= r * r
                sm -= q
                sm2 -= q * q
                sx -= r * q
            if t >= window - 1:
                i = t - window + 1
                mean, mean_m = s / window, sm / window
                vol[i, a] = np.sqrt(252 * max(s2 / window - mean * mean, 0.0))
                beta[i, a] = (sx / window - mean * mean_m) / (sm2 / window - mean_m * mean_m)
        peak = prices[0, a]
        worst = 0.0
        for t in range(days):
            peak = max(peak, prices[t, a])
            worst = min(worst, prices[t, a] / peak - 1)
        drawdown[a] = worst
        ordered = np.sort(ret[a])
        value_at_risk[a] = -ordered[k]
        shortfall[a] = -ordered[:k].mean()
    return vol, beta, drawdown, value_at_risk, shortfall
