"""Selection of accounts in credit and the sum of their balances."""
import csv

import numpy as np


def make_inputs():
    rng = np.random.default_rng(66)
    account = rng.integers(10**17, 9 * 10**17, size=40)
    balance = np.round(rng.normal(150.0, 400.0, size=40), 2)
    return account, balance


def in_credit(account, balance):
    marked = np.where(balance > 0.0, account, np.nan)
    return marked[~np.isnan(marked)].astype(np.int64)


def run(account, balance):
    credit_accounts = in_credit(account, balance)
    credit_sum = balance[balance > 0.0].sum()
    with open("credit.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["account"])
        writer.writerows([[int(a)] for a in credit_accounts])
    return {
        "credit_accounts": credit_accounts,
        "credit_sum": float(credit_sum),
        "n_credit": int(credit_accounts.size),
        "branch": account // 10**14,
    }


ANSWER = {
    "line": 15,
    "fix_line": 15,
    "outputs": {
        "credit_accounts": {"differ": 25},
        "credit_sum": {"differ": 0},
        "n_credit": {"differ": 0},
        "branch": {"differ": 0},
    },
    "why": "mixing int64 with NaN gives float64, which cannot hold account numbers above 2**53",
}
