"""A daily book of positions: prices come in single precision, cash and profit are kept in double
so that sums over years stay exact to a cent, and the report gives drawdown and turnover."""
import numpy as np

CONFIG = {"cash": 100_000.0, "fee": 0.0005, "lot": 10}


class Ledger:
    def __init__(self, assets, config):
        self.config = config
        self.shares = np.zeros(assets, dtype=np.int64)
        self.cash = np.float64(config["cash"])
        self.fees = np.float64(0.0)

    def value(self, prices):
        return self.cash + self.shares @ prices

    def rebalance(self, prices, weights):
        lot = self.config["lot"]
        target = np.floor(self.value(prices) * weights / (prices * lot)).astype(np.int64) * lot
        trade = target - self.shares
        fee = np.abs(trade * prices).sum() * self.config["fee"]
        self.cash -= trade @ prices + fee
        self.fees += fee
        self.shares = target
        return np.abs(trade)


def momentum(history, window):
    change = history[-1] / history[-window] - 1
    score = np.maximum(change, 0)
    total = score.sum()
    return score / total * 0.95 if total > 0 else np.zeros_like(score)


def backtest(closes, window, every):
    closes = closes.astype(np.float64)
    ledger = Ledger(closes.shape[1], CONFIG)
    equity, traded = [], np.zeros(closes.shape[1], dtype=np.int64)
    for day in range(window, len(closes)):
        if (day - window) % every == 0:
            traded += ledger.rebalance(closes[day], momentum(closes[day - window:day], window))
        equity.append(ledger.value(closes[day]))
    return np.array(equity), traded, ledger.fees


def drawdown(equity):
    peak = np.maximum.accumulate(equity)
    return (peak - equity) / peak


def main(closes):
    equity, traded, fees = backtest(closes, window=20, every=5)
    return equity, drawdown(equity), traded, np.array(fees)


def inputs():
    rng = np.random.default_rng(0)
    steps = rng.normal(0.0004, 0.012, size=(120, 4)).cumsum(axis=0)
    return ((np.array([32.0, 110.0, 54.0, 250.0]) * np.exp(steps)).astype(np.float32),)
