"""Lloyd's k-means on single-precision points, centres given."""
import numpy as np

ITERS = 10


def assign(points, centres):
    diff = points[:, None, :] - centres[None, :, :]
    d2 = np.einsum("nkd,nkd->nk", diff, diff)
    return d2.argmin(axis=1), d2.min(axis=1)


def update(points, labels, centres):
    new = centres.copy()
    for k in range(centres.shape[0]):
        members = points[labels == k]
        if len(members):
            new[k] = members.mean(axis=0)
    return new


def main(points, centres):
    for _ in range(ITERS):
        labels, _ = assign(points, centres)
        new = update(points, labels, centres)
        if np.allclose(new, centres, atol=1e-6):
            break
        centres = new
    labels, d2 = assign(points, centres)
    inertia = d2.sum()
    sizes = np.bincount(labels, minlength=len(centres))
    return centres, labels, inertia, sizes


def inputs():
    rng = np.random.default_rng(5)
    true = np.array([[0, 0], [4, 4], [0, 5]], dtype=np.float32)
    pts = np.repeat(true, 20, axis=0) + 0.5 * rng.standard_normal((60, 2), dtype=np.float32)
    return pts, pts[[0, 25, 45]].copy()
