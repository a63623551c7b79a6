"""Totals received per wallet from transfers given in the smallest coin unit."""
import numpy as np

N_WALLETS = 9


def make_inputs():
    rng = np.random.default_rng(1313)
    wallet = rng.integers(0, N_WALLETS - 1, size=80)
    amount = rng.integers(10**15, 4 * 10**17, size=80)
    block = np.sort(rng.integers(18_000_000, 18_000_500, size=80))
    return wallet, amount, block


def run(wallet, amount, block):
    n_transfers = np.bincount(wallet, minlength=N_WALLETS)
    received = np.bincount(wallet, weights=amount, minlength=N_WALLETS)
    received = received.astype(np.int64)
    largest = np.zeros(N_WALLETS, dtype=np.int64)
    np.maximum.at(largest, wallet, amount)
    span = int(np.ptp(block))
    for w in range(3):
        print("wallet %d: %d transfers, %d units" % (w, n_transfers[w], received[w]))
    return {
        "received": received,
        "n_transfers": n_transfers,
        "largest": largest,
        "block_span": span,
    }


ANSWER = {
    "line": 17,
    "fix_line": 17,
    "outputs": {
        "received": {"differ": 8},
        "n_transfers": {"differ": 0},
        "largest": {"differ": 0},
        "block_span": {"differ": 0},
    },
    "why": "bincount adds weights in float64, sums above 2**53 are rounded",
}
