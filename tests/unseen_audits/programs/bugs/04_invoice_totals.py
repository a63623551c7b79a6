import io

import numpy as np

# Wholesale invoices, amounts in rupiah. Columns: region, quantity, unit price.


def make_inputs():
    rng = np.random.default_rng(77)
    rows = ["region,quantity,price"]
    for _ in range(160):
        region = rng.integers(0, 4)
        small = rng.random() < 0.9 or region == 2
        qty = rng.integers(1, 400) if small else rng.integers(9_000, 40_000)
        price = rng.integers(15, 4000) * 100
        rows.append(f"{region},{qty},{price}")
    return ("\n".join(rows) + "\n",)


def read_table(text):
    return np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1, dtype=np.int32)


def run(text):
    table = read_table(text)
    region, qty, price = table.T
    value = qty * price
    print("region   invoices          total        largest")
    for r in np.unique(region):
        mine = value[region == r]
        print(f"{r:>6d} {mine.size:>10d} {mine.sum():>14d} {mine.max():>14d}")


def exact(text):
    groups = {}
    for line in text.splitlines()[1:]:
        r, q, p = map(int, line.split(","))
        groups.setdefault(r, []).append(q * p)
    keys = sorted(groups)
    return ([len(groups[k]) for k in keys], [sum(groups[k]) for k in keys],
            [max(groups[k]) for k in keys])


ANSWER = {
    "line": 27,
    "kind": "wrap",
    "operation": "product of two int32 columns (loadtxt with dtype int32) wraps modulo 2**32",
    "outputs": {
        "invoices per region (printed)": {"size": 4, "differ": 0},
        "total per region (printed)": {"size": 4, "differ": 3},
        "largest invoice per region (printed)": {"size": 4, "differ": 3},
    },
    "fix": "value = qty.astype(np.int64) * price",
}
