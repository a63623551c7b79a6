"""Backtest of a monthly rebalanced portfolio: returns, drawdowns, risk measures and costs."""
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

TRADING_DAYS = 252
COST_BPS = 4.0


@dataclass
class Report:
    wealth: np.ndarray
    annual_return: float
    annual_volatility: float
    max_drawdown: float
    drawdown_span: tuple
    value_at_risk: float
    shortfall: float
    turnover: np.ndarray
    contributions: dict = field(default_factory=dict)


def make_inputs():
    rng = np.random.default_rng(2024)
    names = ("equity", "bonds", "gold", "property")
    drift = np.array([0.07, 0.025, 0.04, 0.05]) / TRADING_DAYS
    vol = np.array([0.18, 0.05, 0.15, 0.13]) / np.sqrt(TRADING_DAYS)
    corr = np.array([
        [1.0, -0.2, 0.05, 0.6],
        [-0.2, 1.0, 0.2, 0.0],
        [0.05, 0.2, 1.0, 0.1],
        [0.6, 0.0, 0.1, 1.0],
    ])
    factor = np.linalg.cholesky(corr)
    shocks = rng.standard_normal((504, 4)) @ factor.T
    log_returns = drift + shocks * vol
    start = np.array([101.3, 88.0, 1720.5, 43.2])
    prices = start * np.exp(np.cumsum(log_returns, axis=0))
    prices = np.vstack([start, prices])
    return names, np.round(prices, 4), np.array([0.5, 0.3, 0.1, 0.1]), 250_000.0


def simple_returns(prices):
    return prices[1:] / prices[:-1] - 1.0


def rebalance_days(n_days, every=21):
    return set(range(0, n_days, every))


def simulate(returns, target, capital):
    """Daily wealth of a portfolio brought back to target weights every 21 days."""
    holdings = target * capital
    wealth = [capital]
    turnover = []
    gains = np.zeros_like(target)
    days = rebalance_days(len(returns))
    for day, row in enumerate(returns):
        if day in days and day > 0:
            total = holdings.sum()
            wanted = target * total
            traded = np.abs(wanted - holdings).sum()
            cost = traded * COST_BPS * 1e-4
            turnover.append(traded / total)
            holdings = wanted * (1.0 - cost / total)
        step = holdings * row
        gains += step
        holdings = holdings + step
        wealth.append(holdings.sum())
    return np.array(wealth), np.array(turnover), gains


def drawdown(wealth):
    top = np.maximum.accumulate(wealth)
    depth = wealth / top - 1.0
    low = int(depth.argmin())
    high = int(wealth[: low + 1].argmax())
    return float(-depth.min()), (high, low)


def tail_risk(daily, level=0.95):
    losses = np.sort(-daily)
    cut = np.quantile(losses, level)
    return float(cut), float(losses[losses >= cut].mean())


def rolling_volatility(daily, window=63):
    blocks = sliding_window_view(daily, window)
    return blocks.std(axis=1, ddof=1) * np.sqrt(TRADING_DAYS)


def run(names, prices, target, capital):
    returns = simple_returns(prices)
    wealth, turnover, gains = simulate(returns, target, capital)
    daily = simple_returns(wealth)
    depth, span = drawdown(wealth)
    var, shortfall = tail_risk(daily)
    years = len(daily) / TRADING_DAYS
    report = Report(
        wealth=wealth,
        annual_return=float((wealth[-1] / wealth[0]) ** (1.0 / years) - 1.0),
        annual_volatility=float(daily.std(ddof=1) * np.sqrt(TRADING_DAYS)),
        max_drawdown=depth,
        drawdown_span=span,
        value_at_risk=var,
        shortfall=shortfall,
        turnover=turnover,
        contributions=dict(zip(names, gains.tolist())),
    )
    vol = rolling_volatility(daily)
    print(f"final wealth     {wealth[-1]:>14,.2f}")
    print(f"annual return    {report.annual_return:>14.3%}")
    print(f"max drawdown     {depth:>14.3%}  days {span[0]} to {span[1]}")
    print(f"rolling vol      {vol.min():.4f} .. {vol.max():.4f}")
    np.savetxt("wealth.csv", np.column_stack([np.arange(wealth.size), wealth]), delimiter=",", fmt=["%d", "%.2f"])
    return report
