"""Some figures about the orders of last week."""
import tempfile
from pathlib import Path

import numpy as np

ORDERS = """\
customer,items,amount
20417731,3,25.50
20417732,1,8.25
20417733,2,14.75
20417731,5,61.00
33900125,1,4.50
33900126,1,9.75
33900127,4,38.25
20417734,2,19.50
33900125,3,27.00
20417735,6,72.25
"""


def write_export(folder):
    path = Path(folder) / "orders.csv"
    path.write_text(ORDERS)
    return path


def load(path):
    # one small table, 4 bytes a cell is plenty for amounts below 1000
    return np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)


def describe(name, column):
    print(f"{name:8s} min {column.min():8.2f}  mean {column.mean():8.2f}  max {column.max():8.2f}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        table = load(write_export(folder))
    customer = table[:, 0].astype(np.int64)
    items = table[:, 1].astype(np.int64)
    amount = table[:, 2]

    describe("items", items)
    describe("amount", amount)

    who, orders = np.unique(customer, return_counts=True)
    print(f"customers: {len(who)}")
    print(f"returning: {int((orders > 1).sum())}")
    for c, n in zip(who, orders):
        spent = amount[customer == c].sum()
        print(f"  {c}: {n} orders, {spent:.2f}")


if __name__ == "__main__":
    main()
