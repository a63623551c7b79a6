"""Align short reads to a reference by k-mer seeding and banded global alignment.

Bases are coded 0..3 in uint8; k-mers become int32 numbers, seeds vote for a diagonal, the final score is
from a Needleman-Wunsch table in int16, and the consensus is called from the pile-up.
"""
# outputs: 13
# (3 returned, 8 numbers printed, 2 arrays written)
import numpy as np

BASES = np.frombuffer(b"ACGT", dtype="S1")
K = 6
MATCH, MISMATCH, GAP = 2, -3, -4


def random_genome(n, rng):
    return rng.integers(0, 4, size=n, dtype=np.uint8)


def sample_reads(genome, n_reads, length, rate, rng):
    starts = rng.integers(0, genome.size - length, size=n_reads)
    reads = genome[starts[:, None] + np.arange(length)]
    wrong = rng.random(reads.shape) < rate
    reads = np.where(wrong, (reads + rng.integers(1, 4, size=reads.shape)) % 4, reads)
    return starts, reads.astype(np.uint8)


def kmers(codes):
    weights = 4 ** np.arange(K - 1, -1, -1, dtype=np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(codes, K)
    return windows.astype(np.int32) @ weights


def build_index(genome):
    words = kmers(genome)
    order = np.argsort(words, kind="stable")
    return words[order], order


def seed(read, index):
    words, positions = index
    query = kmers(read)
    lo = np.searchsorted(words, query, side="left")
    hi = np.searchsorted(words, query, side="right")
    diagonals = [positions[a:b] - i for i, (a, b) in enumerate(zip(lo, hi)) if b > a]
    if not diagonals:
        return None, 0
    value, votes = np.unique(np.concatenate(diagonals), return_counts=True)
    best = votes.argmax()
    return int(value[best]), int(votes[best])


def needleman_wunsch(a, b):
    n, m = len(a), len(b)
    score = np.zeros((n + 1, m + 1), dtype=np.int16)
    score[0] = GAP * np.arange(m + 1)
    score[:, 0] = GAP * np.arange(n + 1)
    same = np.where(a[:, None] == b[None, :], MATCH, MISMATCH).astype(np.int16)
    for d in range(2, n + m + 1):            # anti-diagonals
        i = np.arange(max(1, d - m), min(n, d - 1) + 1)
        j = d - i
        options = np.stack([score[i - 1, j - 1] + same[i - 1, j - 1],
                            score[i - 1, j] + GAP, score[i, j - 1] + GAP])
        score[i, j] = options.max(axis=0)
    return score


def to_text(codes):
    return BASES[codes].tobytes().decode()


def main():
    rng = np.random.default_rng(2003)
    genome = random_genome(420, rng)
    starts, reads = sample_reads(genome, 70, 30, 0.03, rng)
    index = build_index(genome)

    pile = np.zeros((genome.size, 4), dtype=np.int32)
    placed = np.full(len(reads), -1)
    scores = np.zeros(len(reads), dtype=np.int64)
    for r, read in enumerate(reads):
        where, votes = seed(read, index)
        if where is None or votes < 3 or not 0 <= where <= genome.size - read.size:
            continue
        placed[r] = where
        if r % 5 == 0:
            scores[r] = needleman_wunsch(read, genome[where:where + read.size])[-1, -1]
        np.add.at(pile, (where + np.arange(read.size), read), 1)

    ok = placed == starts
    print("reads placed", np.count_nonzero(placed >= 0), "correctly", np.count_nonzero(ok))
    depth = pile.sum(axis=1)
    consensus = np.where(depth > 0, pile.argmax(axis=1), genome)
    agree = (consensus == genome)[depth > 0].mean()
    print(f"depth mean {depth.mean():.3f} max {depth.max()} uncovered {np.sum(depth == 0)}")
    print("consensus identity", round(float(agree), 5))
    print("start of the consensus", to_text(consensus[:24]))

    share = pile[depth > 0] / depth[depth > 0, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(share * np.log2(share), axis=1)
    gc = np.convolve(np.isin(genome, [1, 2]), np.ones(50) / 50, mode="valid")
    print("GC content min {:.2f} max {:.2f}".format(gc.min(), gc.max()))
    np.save("pileup.npy", pile)
    np.savetxt("depth.txt", depth[None], fmt="%d")
    return scores[scores > 0], entropy.mean(), np.bincount(genome, minlength=4)


if __name__ == "__main__":
    main()
