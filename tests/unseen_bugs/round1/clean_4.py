"""k-means on float32 points; the centres are accumulated in float64 and kept in float32."""
import numpy as np

CONFIG = {"k": 3, "iterations": 8, "tolerance": 1e-6}


def assign(points, centres):
    cross = points @ centres.T
    dist = (centres ** 2).sum(axis=1)[None] - 2 * cross
    return np.argmin(dist, axis=1)


def update(points, labels, centres):
    new = np.empty_like(centres)
    for j in range(centres.shape[0]):
        members = points[labels == j]
        if members.shape[0] == 0:
            new[j] = centres[j]
        else:
            new[j] = members.mean(axis=0, dtype=np.float64)
    return new


def inertia(points, labels, centres):
    diff = points - centres[labels]
    return np.sum(diff * diff, dtype=np.float64)


def main(points):
    centres = points[:: points.shape[0] // CONFIG["k"]][:CONFIG["k"]].copy()
    for _ in range(CONFIG["iterations"]):
        labels = assign(points, centres)
        moved = update(points, labels, centres)
        shift = np.abs(moved - centres).max()
        centres = moved
        if shift < CONFIG["tolerance"]:
            break
    return centres, labels, inertia(points, labels, centres)


def inputs():
    rng = np.random.default_rng(14)
    means = np.repeat(np.array([[0, 0], [4, 1], [1, 5]], np.float32), 30, axis=0)
    return (means + rng.normal(size=means.shape).astype(np.float32),)
