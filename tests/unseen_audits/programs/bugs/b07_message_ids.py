"""Message identifiers: decoding of the parts and computing successor identifiers."""
import numpy as np

EPOCH_MS = 1_288_834_974_657


def make_inputs():
    rng = np.random.default_rng(77)
    millis = rng.integers(10**11, 4 * 10**11, size=25).astype(np.uint64)
    worker = rng.integers(0, 1024, size=25).astype(np.uint64)
    serial = rng.integers(0, 4096, size=25).astype(np.uint64)
    ids = (millis << 22) | (worker << 12) | serial
    step = rng.integers(1, 9, size=25)
    return ids, step


def run(ids, step):
    worker = (ids >> 12) & 0x3FF
    sent_ms = (ids >> 22).astype(np.int64) + EPOCH_MS
    following = ids + step
    following = following.astype(np.uint64)
    print("first worker %d, first sent %d" % (worker[0], sent_ms[0]))
    return {
        "worker": worker,
        "sent_ms": sent_ms,
        "following": following,
        "total_step": int(step.sum()),
    }


ANSWER = {
    "line": 20,
    "fix_line": 20,
    "outputs": {
        "worker": {"differ": 0},
        "sent_ms": {"differ": 0},
        "following": {"differ": 25},
        "total_step": {"differ": 0},
    },
    "why": "uint64 + int64 is float64, which cannot hold identifiers above 2**53",
}
