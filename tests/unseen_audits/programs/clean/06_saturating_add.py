import numpy as np


def make_inputs():
    gen = np.random.default_rng(86)
    a = gen.integers(0, 256, size=(20, 32), dtype=np.uint8)
    b = gen.integers(0, 256, size=(20, 32), dtype=np.uint8)
    b[:, ::4] //= 8
    return a, b


def run(a, b):
    """Add and subtract two 8-bit images with saturation, as MMX paddusb / psubusb do."""
    total = a + b
    total[total < a] = 255          # a wrapped sum is smaller than either operand

    room = np.uint8(255) - a
    check = a + np.minimum(b, room)
    assert np.array_equal(total, check)

    difference = np.maximum(a, b) - b
    lost = np.count_nonzero(b > room)
    print("saturated high:", lost, "low:", np.count_nonzero(b > a))
    return {"sum": total, "difference": difference, "grey": int(total.sum())}


def exact(a, b):
    p, q = a.ravel().tolist(), b.ravel().tolist()
    s = [min(x + y, 255) for x, y in zip(p, q)]
    return (s, [max(x - y, 0) for x, y in zip(p, q)], sum(s),
            sum(x + y > 255 for x, y in zip(p, q)), sum(y > x for x, y in zip(p, q)))


ANSWER = {
    "outputs": {
        "sum (dict entry)": {"size": 640, "differ": 0, "intended": True},
        "difference (dict entry)": {"size": 640, "differ": 0},
        "grey (dict entry)": {"size": 1, "differ": 0},
        "saturated high (printed)": {"size": 1, "differ": 0},
        "low (printed)": {"size": 1, "differ": 0},
    },
    "note": "the wrapped uint8 sums are recognised and replaced by 255; the other operations are bounded so they cannot wrap",
}
