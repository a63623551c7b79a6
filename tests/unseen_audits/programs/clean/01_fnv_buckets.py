"""Assign k-mers to shards with a vectorised 64-bit FNV-1a hash."""
import numpy as np

OFFSET = np.uint64(14695981039346656037)
PRIME = np.uint64(1099511628211)


def make_inputs():
    rng = np.random.default_rng(64)
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    return letters[rng.integers(0, 4, size=(180, 11))], 16


def run(kmers, shards):
    h = np.full(kmers.shape[0], OFFSET, dtype=np.uint64)
    for column in kmers.T:
        h ^= column
        h *= PRIME
    shard = (h >> np.uint64(60)).astype(np.uint8) % shards
    load = np.bincount(shard, minlength=shards)
    print("fullest shard:", load.max())
    return h, shard


def exact(kmers, shards):
    hs = []
    for row in kmers.tolist():
        h = 14695981039346656037
        for b in row:
            h = ((h ^ b) * 1099511628211) % 2**64
        hs.append(h)
    sh = [(h >> 60) % shards for h in hs]
    return hs, sh, max(sh.count(k) for k in range(shards))


ANSWER = {
    "outputs": {
        "h (returned, first)": {"size": 180, "differ": 0, "intended": True},
        "shard (returned, second)": {"size": 180, "differ": 0, "intended": True},
        "fullest shard (printed)": {"size": 1, "differ": 0, "intended": True},
    },
    "note": "FNV-1a is defined modulo 2**64: the uint64 multiplication is meant to wrap; the top four bits fit in uint8",
}
