"""Mean-variance portfolios from weekly prices.

Prices are quoted in integer cents; log returns, a shrunk covariance matrix, minimum-variance and tangency
portfolios, the efficient frontier, risk contributions, drawdown and a back-test with monthly rebalancing.
"""
# outputs: 41
# (3 returned, 36 numbers printed, 2 arrays written)
import numpy as np

FUNDS = ["equity", "small", "bonds", "metals", "estate"]
WEEKS = 208


def price_history(rng):
    mean = np.array([0.0016, 0.0019, 0.0005, 0.0008, 0.0011])
    vol = np.array([0.022, 0.031, 0.006, 0.026, 0.019])
    corr = np.array([[1.0, 0.8, -0.1, 0.0, 0.6],
                     [0.8, 1.0, -0.1, 0.1, 0.5],
                     [-0.1, -0.1, 1.0, 0.2, 0.1],
                     [0.0, 0.1, 0.2, 1.0, 0.1],
                     [0.6, 0.5, 0.1, 0.1, 1.0]])
    chol = np.linalg.cholesky(corr * np.outer(vol, vol))
    shocks = rng.standard_t(6, size=(WEEKS, 5)) / np.sqrt(1.5)
    logp = np.cumsum(mean - 0.5 * vol ** 2 + shocks @ chol.T, axis=0)
    start = np.array([10_000, 4_250, 10_120, 18_900, 7_775])
    prices = start * np.exp(np.vstack([np.zeros(5), logp]))
    dates = np.datetime64("2019-01-04") + 7 * np.arange(WEEKS + 1)
    return dates, np.rint(prices).astype(np.int64)


def shrink(returns, intensity=0.15):
    sample = np.cov(returns, rowvar=False)
    target = np.diag(np.diag(sample))
    return (1 - intensity) * sample + intensity * target


def minimum_variance(cov):
    w = np.linalg.solve(cov, np.ones(len(cov)))
    return w / w.sum()


def tangency(mean, cov, rate):
    w = np.linalg.solve(cov, mean - rate)
    return w / w.sum()


def frontier(mean, cov, targets):
    """Weights of the fully invested portfolios with a given mean, from the KKT system."""
    n = len(mean)
    kkt = np.zeros((n + 2, n + 2))
    kkt[:n, :n] = 2 * cov
    kkt[:n, n], kkt[n, :n] = 1, 1
    kkt[:n, n + 1], kkt[n + 1, :n] = mean, mean
    rhs = np.zeros((n + 2, targets.size))
    rhs[n] = 1
    rhs[n + 1] = targets
    return np.linalg.solve(kkt, rhs)[:n].T


def drawdown(wealth):
    top = np.maximum.accumulate(wealth)
    dd = 1 - wealth / top
    worst = dd.argmax()
    peak = wealth[: worst + 1].argmax()
    return dd, peak, worst


def backtest(dates, prices, lookback=60, cost=0.0005):
    month = dates.astype("datetime64[M]")
    weights = np.full(5, 0.2)
    wealth = [1.0]
    turnover = 0.0
    for t in range(lookback, len(prices) - 1):
        if month[t] != month[t - 1]:
            window = np.diff(np.log(prices[t - lookback:t + 1]), axis=0)
            new = np.clip(minimum_variance(shrink(window)), 0, None)
            new /= new.sum()
            turnover += np.abs(new - weights).sum()
            wealth[-1] *= 1 - cost * np.abs(new - weights).sum()
            weights = new
        growth = prices[t + 1] / prices[t]
        wealth.append(wealth[-1] * float(weights @ growth))
        weights = weights * growth / (weights @ growth)
    return np.array(wealth), turnover


def main():
    rng = np.random.default_rng(1952)
    dates, cents = price_history(rng)
    returns = np.diff(np.log(cents), axis=0)
    mean, cov = 52 * returns.mean(axis=0), 52 * shrink(returns)
    vol = np.sqrt(np.diag(cov))
    skew = ((returns - returns.mean(0)) ** 3).mean(0) / returns.std(0) ** 3
    print(f"{'fund':8s}{'last':>10s}{'mean':>9s}{'vol':>9s}{'skew':>9s}")
    for k, name in enumerate(FUNDS):
        print(f"{name:8s}{cents[-1, k] / 100:10.2f}{mean[k]:9.4f}{vol[k]:9.4f}{skew[k]:9.3f}")

    mv = minimum_variance(cov)
    best = tangency(mean, cov, 0.01)
    risk = mv * (cov @ mv) / (mv @ cov @ mv)
    print("minimum variance", *mv.round(4), "risk share", *risk.round(4))
    print("Sharpe ratio of the tangency portfolio", round((best @ mean - 0.01) / np.sqrt(best @ cov @ best), 4))
    targets = np.linspace(mean.min(), mean.max(), 9)
    w = frontier(mean, cov, targets)
    spread = np.sqrt(np.einsum("ki,ij,kj->k", w, cov, w))

    wealth, turnover = backtest(dates, cents)
    dd, peak, worst = drawdown(wealth)
    print(f"final wealth {wealth[-1]:.5f} turnover {turnover:.4f} worst drawdown {dd[worst]:.4f}")
    print("from", dates[60 + peak], "to", dates[60 + worst])
    losses = np.sort(-np.diff(wealth) / wealth[:-1])[::-1]
    np.savetxt("frontier.csv", np.column_stack([targets, spread, w]), delimiter=",", fmt="%.8f")
    np.save("wealth.npy", wealth)
    return best, losses[: losses.size // 20].mean(), np.linalg.cond(cov)


if __name__ == "__main__":
    main()
