"""Run a month of postings over savings accounts; all money is in whole cents."""
import json

import numpy as np

ACCOUNTS = json.loads("""
[{"id": 1001, "cents": 1250000}, {"id": 1002, "cents": 98075},
 {"id": 1003, "cents": 430000150}, {"id": 1004, "cents": 99}]
""")
POSTINGS = [(1001, -45000), (1002, 250000), (1004, 5000), (1003, -10000075), (1001, 1999)]
RATE = 0.0325
DAYS = 30


def open_ledger(accounts):
    ids = np.array([a["id"] for a in accounts], dtype=np.int64)
    cents = np.array([a["cents"] for a in accounts], dtype=np.int64)
    return ids, cents


def post(ids, cents, postings):
    who = np.array([p[0] for p in postings])
    how_much = np.array([p[1] for p in postings], dtype=np.int64)
    np.add.at(cents, np.searchsorted(ids, who), how_much)


def interest(cents, rate, days):
    """Interest for the month, rounded half to even to the cent, as the terms say."""
    exact = cents * rate * days / 365
    return np.rint(exact).astype(np.int64)


def euros(cents):
    return f"{cents // 100:,d}.{cents % 100:02d}"


def main():
    ids, cents = open_ledger(ACCOUNTS)
    before = int(cents.sum())
    post(ids, cents, POSTINGS)
    earned = interest(cents, RATE, DAYS)
    cents += earned
    assert int(cents.sum()) == before + sum(p[1] for p in POSTINGS) + int(earned.sum())
    for i, c, e in zip(ids.tolist(), cents.tolist(), earned.tolist()):
        print(f"{i}  {euros(c):>16s}  (interest {euros(e)})")
    print(f"bank owes {euros(int(cents.sum()))}")


if __name__ == "__main__":
    main()
