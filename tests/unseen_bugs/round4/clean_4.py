"""Trades of a day, as records: volume-weighted prices by instrument and a running position.
Prices are float32 ticks on the wire; sums of money are accumulated in float64."""
import numpy as np

TRADE = np.dtype([("time", np.int64), ("instrument", np.int16), ("price", np.float32),
                  ("quantity", np.int32), ("side", np.int8)])
CONFIG = {"instruments": 4, "bucket": 60_000_000_000, "fee": 0.0004}


def vwap(trades, count):
    index = trades["instrument"].astype(np.intp)
    quantity = trades["quantity"].astype(np.int64)
    money = trades["price"].astype(np.float64) * quantity
    total = np.zeros(count, dtype=np.float64)
    volume = np.zeros(count, dtype=np.int64)
    np.add.at(total, index, money)
    np.add.at(volume, index, quantity)
    return np.divide(total, volume, out=np.zeros(count), where=volume > 0), volume


def positions(trades, count):
    signed = trades["quantity"].astype(np.int64) * trades["side"]
    held = np.zeros((len(trades), count), dtype=np.int64)
    held[np.arange(len(trades)), trades["instrument"]] = signed
    return np.cumsum(held, axis=0)


def fees(trades, rate):
    notional = trades["price"].astype(np.float64) * trades["quantity"]
    return np.where(trades["side"] > 0, notional * rate, notional * rate / 2)


def buckets(trades, width):
    start = trades["time"][0] // width
    return trades["time"] // width - start


def main(trades):
    prices, volume = vwap(trades, CONFIG["instruments"])
    held = positions(trades, CONFIG["instruments"])
    cost = fees(trades, CONFIG["fee"]).sum()
    per_bucket = np.bincount(buckets(trades, CONFIG["bucket"]))
    return prices, volume, held[-1], np.array([cost]), per_bucket / len(trades)


def inputs():
    rng = np.random.default_rng(2)
    trades = np.zeros(40, TRADE)
    trades["time"] = 1_700_000_000_000_000_000 + np.sort(rng.integers(0, 5 * CONFIG["bucket"], 40))
    trades["instrument"] = rng.integers(0, 3, 40)
    trades["price"] = rng.integers(4000, 4400, 40) / 4
    trades["quantity"] = rng.integers(1, 500_000, 40)
    trades["side"] = rng.choice([-1, 1], 40)
    return (trades,)
