"""Cumulative returns, drawdown and Sharpe ratio from daily closing prices."""
import numpy as np

TRADING_DAYS = 252


def simple_returns(prices):
    return prices[1:] / prices[:-1] - 1.0


def drawdown(wealth):
    peak = np.maximum.accumulate(wealth, axis=0)
    return wealth / peak - 1.0


def main(prices, weights):
    r = simple_returns(prices)
    portfolio = r @ weights
    wealth = np.cumprod(1.0 + portfolio)
    dd = drawdown(wealth)
    vol = portfolio.std(ddof=1) * np.sqrt(TRADING_DAYS)
    mean = portfolio.mean() * TRADING_DAYS
    sharpe = mean / vol
    log_total = np.log1p(portfolio).sum()
    cov = np.cov(r, rowvar=False) * TRADING_DAYS
    worst_day = dd.argmin()
    return wealth, dd, sharpe, log_total, cov, worst_day


def inputs():
    rng = np.random.default_rng(8)
    steps = rng.normal(0.0004, 0.01, size=(90, 3))
    prices = 100.0 * np.exp(np.cumsum(steps, axis=0))
    return prices, np.array([0.5, 0.3, 0.2])
