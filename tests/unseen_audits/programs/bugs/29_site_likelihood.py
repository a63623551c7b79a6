# Assign reads to haplotypes: likelihood is a product over the sites of a read
import numpy as np


def make_inputs():
    rng = np.random.default_rng(1953)
    n_reads, n_hap, n_sites = 40, 3, 14
    agree = rng.random((n_reads, n_hap, n_sites)) < 0.75
    quality = rng.choice([1e-2, 1e-3, 1e-4], size=(n_reads, 1, n_sites), p=[.3, .4, .3])
    noisy = rng.random(n_reads) < 0.35
    agree[noisy] = rng.random((int(noisy.sum()), n_hap, n_sites)) < 0.12
    prob = np.where(agree, 1 - quality, quality / 3).astype(np.float32)
    prior = np.array([0.5, 0.3, 0.2])
    return prob, prior


def run(prob, prior):
    like = prob.prod(axis=2)
    joint = like.astype(np.float64) * prior
    evidence = joint.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        posterior = joint / evidence[:, None]
    best = joint.argmax(axis=1)
    unassigned = np.count_nonzero(~(np.nan_to_num(posterior).max(axis=1) > 0.9))
    print("reads per haplotype:", *np.bincount(best, minlength=3))
    print("unassigned:", unassigned)
    return posterior


def exact(prob, prior):
    import math
    post, count, un = [], [0, 0, 0], 0
    for read in prob.astype(np.float64):
        j = [math.prod(row.tolist()) * p for row, p in zip(read, prior.tolist())]
        s = sum(j)
        post.append([v / s for v in j])
        count[j.index(max(j))] += 1
        un += not max(post[-1]) > 0.9
    return post, count, un


ANSWER = {
    "line": 18,
    "kind": "underflow",
    "operation": "product of float32 probabilities is kept in float32 and underflows to zero or to subnormals below 1e-38",
    "outputs": {
        "posterior (returned)": {"size": 120, "differ": 16},
        "reads per haplotype (printed)": {"size": 3, "differ": 0},
        "unassigned (printed)": {"size": 1, "differ": 0},
    },
    "fix": "like = prob.prod(axis=2, dtype=np.float64)",
}
