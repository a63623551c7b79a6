"""Sequencing depth per window, as the lines of a bedGraph track."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(38)
    depth = rng.poisson(30, size=2000)
    depth[700:1050] = rng.poisson(640, size=350)      # amplified region
    depth[1400:1480] = 0
    return depth.astype(np.int16), 100, "chr7", 55_019_000


def run(depth, window, chrom, start):
    usable = depth.size - depth.size % window
    tiles = depth[:usable].reshape(-1, window)

    bases = np.sum(tiles, axis=1, dtype=np.int16)
    mean = bases / window
    gc_free = np.count_nonzero(tiles == 0, axis=1)

    lines = ["track type=bedGraph name=depth"]
    for i, b in enumerate(bases):
        lo = start + i * window
        lines.append(f"{chrom}\t{lo}\t{lo + window}\t{b}")
    with open("depth.bedgraph", "w") as out:
        out.write("\n".join(lines) + "\n")
    return mean.round(6), gc_free, float(np.median(mean))


def exact(depth, window, chrom, start):
    d = [int(v) for v in depth]
    parts = [d[k:k + window] for k in range(0, len(d) - len(d) % window, window)]
    sums = [sum(p) for p in parts]
    means = [s / window for s in sums]
    o = sorted(means)
    m = len(o) // 2
    med = o[m] if len(o) % 2 else (o[m - 1] + o[m]) / 2
    return means, [p.count(0) for p in parts], [med], sums


ANSWER = {
    "line": 17,
    "kind": "wrap",
    "operation": "np.sum with dtype=np.int16 wraps when a window holds more than 32767 bases",
    "outputs": {
        "mean (returned, first)": {"size": 20, "differ": 4},
        "zero positions (returned, second)": {"size": 20, "differ": 0},
        "median of mean (returned, third)": {"size": 1, "differ": 1},
        "depth.bedgraph last column": {"size": 20, "differ": 4},
    },
    "fix": "bases = np.sum(tiles, axis=1, dtype=np.int64)",
}
