"""Turnover of a day's trades: price in ticks times quantity."""
import numpy as np

TICK = 0.0005


def make_inputs():
    rng = np.random.default_rng(304)
    trades = np.zeros(120, dtype=[("price", "i4"), ("qty", "i4"), ("side", "S1")])
    trades["price"] = 184_000 + np.cumsum(rng.integers(-40, 41, 120))
    trades["qty"] = rng.integers(1, 400, 120) * 100
    trades["side"] = rng.choice([b"B", b"S"], 120)
    return (trades,)


def run(trades):
    turnover = trades["price"].astype(np.int64) * trades["qty"]
    buys = trades["side"] == b"B"
    signed = np.where(buys, trades["qty"], -trades["qty"])
    position = np.cumsum(signed, dtype=np.int64)
    vwap = turnover.sum() / trades["qty"].sum(dtype=np.int64)
    high, low = trades["price"].max(), trades["price"].min()
    middle = (int(high) + int(low)) // 2
    print(f"vwap {vwap * TICK:.4f}, turnover {turnover.sum():,d} ticks")
    return {
        "turnover": turnover,
        "position": position,
        "vwap_ticks": vwap,
        "middle": middle,
        "n_buys": int(np.sum(buys)),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "turnover": {"differ": 0},
        "position": {"differ": 0},
        "vwap_ticks": {"differ": 0},
        "middle": {"differ": 0},
        "n_buys": {"differ": 0},
    },
    "why": "the products and sums of int32 columns are taken in int64",
}
