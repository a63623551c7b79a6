"""Counts of the reference and of the other allele in single cells: reads are tallied by variant
and barcode, the tallies become sparse layers, and the layers give the totals of a variant.

https://github.com/mcvickerlab/WASP2/issues/60
"""
from collections import defaultdict

import numpy as np

BASES = "ACGTN"


class CountMatrix:
    def __init__(self, data, index, shape, dtype=None):
        self.data = np.asarray(data).astype(dtype) if dtype else np.asarray(data)
        self.row, self.col = index
        self.shape, self.dtype = shape, self.data.dtype

    def toarray(self):
        dense = np.zeros(self.shape, dtype=self.dtype)
        dense[self.row, self.col] = self.data
        return dense

    def sum(self, axis, dtype=np.int64):
        return self.toarray().sum(axis=axis, dtype=dtype)


class CountStatsSC:
    def __init__(self):
        self.ref_count = defaultdict(int)
        self.alt_count = defaultdict(int)
        self.other_count = defaultdict(int)
        self.reads_counted = 0
        self.reads_skipped_no_barcode = 0


def count_bc_snp_alleles(reads, variants, stats):
    for snp, barcode, base in reads:
        if barcode < 0:
            stats.reads_skipped_no_barcode += 1
            continue
        ref, alt = variants[snp]
        if base == ref:
            stats.ref_count[snp, barcode] += 1
        elif base == alt:
            stats.alt_count[snp, barcode] += 1
        else:
            stats.other_count[snp, barcode] += 1
        stats.reads_counted += 1


def sparse_from_counts(counts, shape):
    data = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    index = tuple(np.array(list(counts), dtype=np.int64).reshape(-1, 2).T)
    return CountMatrix(data, index, shape, dtype=np.uint8)


def make_count_matrix(reads, variants, barcodes):
    stats = CountStatsSC()
    count_bc_snp_alleles(reads, variants, stats)
    shape = (len(variants), barcodes)
    layers = {name: sparse_from_counts(getattr(stats, name + "_count"), shape)
              for name in ("ref", "alt", "other")}
    obs = {name: layers[name].sum(axis=1) for name in ("ref", "alt")}
    return layers, obs, stats


def main(snp, barcode, base, ref, alt):
    variants = [(BASES[r], BASES[a]) for r, a in zip(ref, alt)]
    reads = zip(snp.tolist(), barcode.tolist(), (BASES[b] for b in base))
    layers, obs, stats = make_count_matrix(reads, variants, int(barcode.max()) + 1)
    total = obs["ref"] + obs["alt"]
    fraction = obs["ref"] / np.maximum(total, 1)
    return layers["ref"].toarray(), layers["alt"].toarray(), total, fraction


def inputs():
    rng = np.random.default_rng(5)
    n = 6000
    snp = np.minimum(rng.geometric(0.45, size=n) - 1, 5)
    barcode = np.minimum(rng.geometric(0.4, size=n) - 1, 4) - (rng.random(n) < 0.03) * 9
    ref, alt = np.array([0, 1, 2, 3, 0, 2]), np.array([2, 3, 0, 1, 1, 3])
    draw = rng.random(n)
    base = np.where(draw < 0.58, ref[snp], np.where(draw < 0.97, alt[snp], 4))
    return snp, np.maximum(barcode, -1), base, ref, alt


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
