import numpy as np

# layout of the binary stock file read by the till software
STOCK = np.dtype([("article", "<u4"), ("on_hand", "<i2"), ("reserved", "<i2"), ("value", "<f8")])


def make_inputs():
    rng = np.random.default_rng(17)
    n = 120
    article = np.sort(rng.choice(np.arange(10_000, 99_999), n, replace=False))
    on_hand = rng.integers(0, 9000, n)
    delivered = rng.integers(0, 300, n)
    bulk = rng.choice(n, 14, replace=False)          # screws and washers
    delivered[bulk] = rng.integers(25_000, 40_000, 14)
    reserved = rng.integers(0, 200, n)
    price = rng.integers(1, 5000, n) / 100
    return article, on_hand, delivered, reserved, price


def run(article, on_hand, delivered, reserved, price):
    rec = np.zeros(article.size, dtype=STOCK)
    rec["article"] = article
    rec["reserved"] = reserved
    rec["on_hand"] = on_hand + delivered
    rec["value"] = rec["on_hand"] * price

    short = rec["on_hand"] < rec["reserved"]
    rec.tofile("stock.bin")
    print(f"{rec.size} articles, {short.sum()} short, stock value {rec['value'].sum():.2f}")
    return rec[short]["article"].size


def exact(article, on_hand, delivered, reserved, price):
    have = [int(a) + int(b) for a, b in zip(on_hand, delivered)]
    val = [h * float(p) for h, p in zip(have, price)]
    res = reserved.tolist()
    short = sum(h < r for h, r in zip(have, res))
    return (short, article.tolist(), have, res, val, len(have), short, [round(sum(val), 2)])


ANSWER = {
    "line": 24,
    "kind": "wrap",
    "operation": "int64 sums stored in an int16 field of a structured array wrap above 32767",
    "outputs": {
        "short articles (returned)": {"size": 1, "differ": 1},
        "stock.bin article": {"size": 120, "differ": 0},
        "stock.bin on_hand": {"size": 120, "differ": 11},
        "stock.bin reserved": {"size": 120, "differ": 0},
        "stock.bin value": {"size": 120, "differ": 11},
        "articles (printed)": {"size": 1, "differ": 0},
        "short (printed)": {"size": 1, "differ": 1},
        "stock value (printed)": {"size": 1, "differ": 1},
    },
    "fix_line": 4,
    "fix": 'STOCK = np.dtype([("article", "<u4"), ("on_hand", "<i4"), ("reserved", "<i2"), ("value", "<f8")])',
}
