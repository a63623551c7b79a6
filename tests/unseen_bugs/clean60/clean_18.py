"""FNV-1a plus the murmur3 finaliser on rows of bytes, in wrapping uint32 arithmetic."""
import numpy as np

FNV_OFFSET = np.uint32(2166136261)
FNV_PRIME = np.uint32(16777619)
BUCKETS = 16


def fnv1a(rows):
    h = np.full(rows.shape[0], FNV_OFFSET, dtype=np.uint32)
    for j in range(rows.shape[1]):
        h = h ^ rows[:, j].astype(np.uint32)
        h = h * FNV_PRIME             # modulo 2**32 on purpose
    return h


def fmix32(h):
    h = h ^ (h >> 16)
    h = h * np.uint32(0x85EBCA6B)
    h = h ^ (h >> 13)
    h = h * np.uint32(0xC2B2AE35)
    return h ^ (h >> 16)


def main(rows):
    h = fmix32(fnv1a(rows))
    bucket = (h % BUCKETS).astype(np.int64)
    load = np.bincount(bucket, minlength=BUCKETS)
    return h, bucket, load


def inputs():
    rng = np.random.default_rng(13)
    return (rng.integers(0, 256, size=(64, 8), dtype=np.uint8),)
