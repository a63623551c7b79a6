"""Dynamic programming over tables."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(lambda rng: (rng.integers(1, 60, (11, 11)).astype(np.int32),), writes=True)
def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k, :]))


@kernel(
    lambda rng: (
        np.log(rng.dirichlet(np.ones(4), 4)),
        np.log(rng.dirichlet(np.ones(5), 4)),
        np.log(np.full(4, 0.25)),
        rng.integers(0, 5, 12),
    )
)
def viterbi(transition, emission, start, observed):
    steps, states = len(observed), len(start)
    score = np.empty((steps, states))
    back = np.zeros((steps, states), dtype=int)
    score[0] = start + emission[:, observed[0]]
    for t in range(1, steps):
        candidates = score[t - 1][:, np.newaxis] + transition
        back[t] = candidates.argmax(axis=0)
        score[t] = candidates.max(axis=0) + emission[:, observed[t]]
    path = np.empty(steps, dtype=int)
    path[-1] = np.argmax(score[-1])
    for t in range(steps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, score[-1].max()


@kernel(lambda rng: (rng.integers(0, 4, 9), rng.integers(0, 4, 8)), scalars=True, depends="control")
def needleman_wunsch(a, b, match=1, mismatch=-1, gap=-2):
    rows, columns = len(a) + 1, len(b) + 1
    score = np.zeros((rows, columns), dtype=np.int32)
    score[:, 0] = gap * np.arange(rows)
    score[0, :] = gap * np.arange(columns)
    for i in range(1, rows):
        for j in range(1, columns):
            step = match if a[i - 1] == b[j - 1] else mismatch
            score[i, j] = max(
                score[i - 1, j - 1] + step, score[i - 1, j] + gap, score[i, j - 1] + gap
            )
    return score
