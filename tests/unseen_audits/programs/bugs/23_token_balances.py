"""Balances of token accounts, in the token's smallest unit (10**-9)."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(21_000_000)
    n_accounts = 24
    account = rng.integers(0, n_accounts, size=420)
    amount = rng.integers(10**6, 10**12, size=420)
    whale = np.isin(account, [3, 8, 15, 20])
    amount[whale] = rng.integers(10**15, 10**17, size=whale.sum())
    sign = np.where(rng.random(420) < 0.2, -1, 1)
    return account, amount * sign, n_accounts


def run(account, amount, n_accounts):
    balance = np.bincount(account, weights=amount, minlength=n_accounts)
    balance = balance.astype(np.int64)
    moves = np.bincount(account, minlength=n_accounts)

    statement = {}
    for k in range(n_accounts):
        statement[f"acc{k:02d}"] = int(balance[k])
    negative = [k for k in range(n_accounts) if balance[k] < 0]
    return statement, moves.tolist(), len(negative)


def exact(account, amount, n_accounts):
    bal, mv = [0] * n_accounts, [0] * n_accounts
    for a, v in zip(account.tolist(), amount.tolist()):
        bal[a] += v
        mv[a] += 1
    return bal, mv, sum(b < 0 for b in bal)


ANSWER = {
    "line": 17,
    "kind": "rounding",
    "operation": "np.bincount converts int64 weights to float64 and sums there; sums above 2**53 are rounded",
    "outputs": {
        "statement (returned, dict of int)": {"size": 24, "differ": 4},
        "moves (returned, list)": {"size": 24, "differ": 0},
        "number of negative accounts (returned)": {"size": 1, "differ": 0},
    },
    "fix": "balance = np.array([amount[account == k].sum() for k in range(n_accounts)])",
}
