"""Bytes in flight of a TCP transfer whose 32-bit sequence numbers wrap around."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(793)
    start = 2**32 - 60_000
    sent = (start + np.cumsum(rng.integers(200, 1460, size=150))) % 2**32
    lag = rng.integers(0, 12, size=150)
    acked = sent[np.maximum(np.arange(150) - lag, 0)]
    return sent.astype(np.uint32), acked.astype(np.uint32)


def run(sent, acked):
    in_flight = sent - acked
    advance = np.diff(sent).astype(np.int64)
    moved = int(advance.sum())
    # an acknowledgement that goes back is a duplicate or reordered one
    back = np.diff(acked).view(np.int32) < 0
    print(f"moved {moved} bytes, peak in flight {in_flight.max()}, reordered {back.sum()}")
    return in_flight


def exact(sent, acked):
    s, a = sent.tolist(), acked.tolist()
    unwrap = [s[0]]
    for p, q in zip(s, s[1:]):
        unwrap.append(unwrap[-1] + (q - p if q >= p else q - p + 2**32))
    true = dict(zip(s, unwrap))
    ua = [true[v] for v in a]
    fl = [u - v for u, v in zip(unwrap, ua)]
    return fl, unwrap[-1] - unwrap[0], max(fl), sum(q < p for p, q in zip(ua, ua[1:]))


ANSWER = {
    "outputs": {
        "in_flight (returned)": {"size": 150, "differ": 0, "intended": True},
        "moved (printed)": {"size": 1, "differ": 0, "intended": True},
        "peak in flight (printed)": {"size": 1, "differ": 0, "intended": True},
        "reordered (printed)": {"size": 1, "differ": 0, "intended": True},
    },
    "note": "uint32 subtraction modulo 2**32 is the definition of sequence distance; the int32 view gives its sign",
}
