"""K-mer profiles of DNA contigs: composition, GC skew, reverse complements and distances."""
import json

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

BASES = b"ACGT"
K = 4


def make_inputs():
    rng = np.random.default_rng(31337)
    contigs = {}
    for i, (gc, size) in enumerate([(0.35, 1800), (0.52, 2400), (0.61, 1500), (0.36, 2100)]):
        p = np.array([(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2])
        letters = np.frombuffer(BASES, dtype=np.uint8)[rng.choice(4, size=size, p=p)]
        letters = letters.copy()
        letters[rng.integers(0, size, 6)] = ord("N")
        contigs[f"contig_{i + 1}"] = letters
    return (contigs,)


def lookup_table():
    table = np.full(256, 255, dtype=np.uint8)
    for code, base in enumerate(BASES):
        table[base] = code
        table[base + 32] = code
    return table


TABLE = lookup_table()


def kmer_index(letters, k=K):
    """Index of every k-mer without an unknown base, as a number in base 4."""
    codes = TABLE[letters]
    windows = sliding_window_view(codes, k)
    known = (windows < 4).all(axis=1)
    place = 4 ** np.arange(k - 1, -1, -1)
    return windows[known].astype(np.int64) @ place


def reverse_complement_index(k=K):
    index = np.arange(4**k)
    result = np.zeros_like(index)
    rest = index.copy()
    for _ in range(k):
        result = result * 4 + (3 - rest % 4)
        rest //= 4
    return result


def canonical_counts(letters, k=K):
    counts = np.bincount(kmer_index(letters, k), minlength=4**k)
    partner = reverse_complement_index(k)
    joined = counts + counts[partner]
    own = np.arange(4**k)
    joined[partner == own] //= 2
    return joined[own <= partner]


def gc_content(letters):
    codes = TABLE[letters]
    known = codes < 4
    gc = np.isin(codes, (1, 2))
    return np.count_nonzero(gc) / np.count_nonzero(known)


def gc_skew(letters, window=200):
    n = letters.size // window * window
    blocks = letters[:n].reshape(-1, window)
    g = np.count_nonzero(blocks == ord("G"), axis=1)
    c = np.count_nonzero(blocks == ord("C"), axis=1)
    return (g - c) / np.maximum(g + c, 1)


def longest_run(letters):
    """Length of the longest run of one base."""
    change = np.flatnonzero(np.diff(letters)) + 1
    edges = np.concatenate([[0], change, [letters.size]])
    return int(np.diff(edges).max())


def bray_curtis(profiles):
    n = len(profiles)
    distance = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            a, b = profiles[i], profiles[j]
            distance[i, j] = distance[j, i] = np.abs(a - b).sum() / (a + b).sum()
    return distance


def shannon(freq):
    positive = freq[freq > 0]
    return float(-(positive * np.log2(positive)).sum())


def run(contigs):
    names = list(contigs)
    counts = np.stack([canonical_counts(contigs[n]) for n in names])
    freq = counts / counts.sum(axis=1, keepdims=True)
    distance = bray_curtis(freq)
    summary = {}
    for name, row in zip(names, freq):
        letters = contigs[name]
        summary[name] = {
            "length": int(letters.size),
            "gc": round(gc_content(letters), 6),
            "entropy": round(shannon(row), 6),
            "longest_run": longest_run(letters),
        }
    with open("profiles.json", "w") as handle:
        json.dump(summary, handle, indent=1, sort_keys=True)
    nearest = (distance + np.eye(len(names)) * 9.0).argmin(axis=1)
    for name, other in zip(names, nearest):
        print(f"{name}: gc {summary[name]['gc']:.3f}, nearest {names[other]}")
    skews = {name: gc_skew(contigs[name]) for name in names}
    return {"counts": counts, "distance": distance, "nearest": nearest, "skew": skews, "summary": summary}
