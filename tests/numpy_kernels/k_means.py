"""Clusters of points by Lloyd's iteration."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


def _blobs(rng, n, d, k):
    return rng.standard_normal((n, d)) + 4 * rng.integers(0, k, (n, 1))


@kernel(lambda rng: (_blobs(rng, 40, 2, 3), 3), depends="shapes")
def lloyd(points, k, rounds=4):
    centers = points[:k].copy()
    for _ in range(rounds):
        distances = np.sqrt(((points - centers[:, np.newaxis]) ** 2).sum(axis=2))
        closest = np.argmin(distances, axis=0)
        centers = np.array([points[closest == j].mean(axis=0) for j in range(k)])
    return centers, closest


@kernel(lambda rng: (_blobs(rng, 50, 3, 4).astype(np.float32), 4, 5))
def one_hot_means(points, k, rounds):
    centers = points[np.linspace(0, len(points) - 1, k).astype(int)]
    for _ in range(rounds):
        d2 = (points**2).sum(1)[:, None] - 2 * points @ centers.T + (centers**2).sum(1)
        labels = d2.argmin(1)
        one_hot = (labels[:, None] == np.arange(k)).astype(points.dtype)
        counts = one_hot.sum(0)
        centers = (one_hot.T @ points) / np.maximum(counts, 1)[:, None]
    inertia = np.take_along_axis(d2, labels[:, None], axis=1).sum()
    return labels, centers, inertia


@kernel(lambda rng: (_blobs(rng, 36, 2, 3), rng.standard_normal((3, 2)) * 4), depends="control")
def until_settled(points, centers, tolerance=1e-6):
    centers = centers.copy()
    rounds = 0
    while True:
        rounds += 1
        distance = np.linalg.norm(points[:, None, :] - centers[None, :, :], axis=-1)
        labels = distance.argmin(axis=1)
        sums = np.zeros_like(centers)
        np.add.at(sums, labels, points)
        counts = np.bincount(labels, minlength=len(centers))
        moved = sums / np.maximum(counts, 1)[:, None]
        if np.abs(moved - centers).max() < tolerance or rounds == 50:
            return moved, labels, rounds
        centers[:] = moved
