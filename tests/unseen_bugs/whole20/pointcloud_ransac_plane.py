"""RANSAC ground plane of a lidar sweep with a least-squares refinement.

Application: ground removal for autonomous driving, indoor plane segmentation.  Planes through random triples of points
are scored by the number of points within a distance; the inliers of the best give the refined plane (smallest
eigenvector of their covariance) and the heights of all points over it.
Public code with such a loop: pyRANSAC-3D (https://github.com/leomariga/pyRANSAC-3D), Open3D `segment_plane`.
"""
import numpy as np

TOLERANCE = 1e-3


def candidate_planes(points, triples):
    p0, p1, p2 = points[triples[:, 0]], points[triples[:, 1]], points[triples[:, 2]]
    normals = np.cross(p1 - p0, p2 - p0)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-12
    return normals, -np.sum(normals * p0, axis=1)


def refine(inliers):
    centre = inliers.mean(axis=0)
    x = inliers - centre
    _, vec = np.linalg.eigh(x.T @ x / len(x))
    normal = vec[:, 0]
    normal = normal * np.sign(normal[2])
    return normal, -normal @ centre


def main(points, triples, threshold=0.08):
    normals, offsets = candidate_planes(points, triples)
    dist = np.abs(points @ normals.T + offsets)
    counts = (dist < threshold).sum(axis=0)
    best = counts.argmax()
    normal, offset = refine(points[dist[:, best] < threshold])
    height = points @ normal + offset
    return normal, np.abs(height), int(counts[best])


def inputs(rng):
    n, tries = 16000, 64
    xy = rng.uniform(-40, 40, (n, 2))
    z = 0.03 * xy[:, 0] - 0.015 * xy[:, 1] - 1.7 + 0.025 * rng.standard_normal(n)
    lifted = rng.random(n) < 0.4
    z[lifted] += rng.exponential(1.5, lifted.sum())
    points = np.column_stack([xy, z]).astype(np.float32)
    return points, rng.integers(0, n, (tries, 3)).astype(np.int32)


try:
    import jax
    import jax.numpy as jnp
except ImportError:
    pass


def jax_main(points, triples, threshold=0.08):
    p0, p1, p2 = points[triples[:, 0]], points[triples[:, 1]], points[triples[:, 2]]
    normals = jnp.cross(p1 - p0, p2 - p0)
    normals = normals / (jnp.linalg.norm(normals, axis=1, keepdims=True) + 1e-12)
    offsets = -jnp.sum(normals * p0, axis=1)
    dist = jnp.abs(points @ normals.T + offsets)
    counts = (dist < threshold).sum(axis=0)
    best = counts.argmax()
    w = (dist[:, best] < threshold).astype(points.dtype)[:, None]
    total = w.sum()
    centre = (w * points).sum(axis=0) / total
    x = (points - centre) * w
    _, vec = jnp.linalg.eigh(x.T @ x / total)
    normal = vec[:, 0] * jnp.sign(vec[2, 0])
    return normal, jnp.abs(points @ normal - normal @ centre), counts[best]


try:
    import torch
except ImportError:
    pass


def torch_main(points, triples, threshold=0.08):
    p0, p1, p2 = points[triples.long()].unbind(1)
    normals = torch.linalg.cross(p1 - p0, p2 - p0)
    normals = normals / (torch.linalg.vector_norm(normals, dim=1, keepdim=True) + 1e-12)
    offsets = -(normals * p0).sum(1)
    dist = (points @ normals.T + offsets).abs()
    counts = (dist < threshold).sum(0)
    best = counts.argmax()
    w = (dist.index_select(1, best[None]) < threshold).to(points.dtype)
    total = w.sum()
    centre = (w * points).sum(0) / total
    x = (points - centre) * w
    _, vec = torch.linalg.eigh(x.T @ x / total)
    normal = vec[:, 0] * torch.sign(vec[2, 0])
    return normal, (points @ normal - normal @ centre).abs(), counts[best]


def numba_main(points, triples, threshold=0.08):
    n = len(points)
    threshold = np.float32(threshold)
    best_count = -1
    ba = bb = bc = bd = np.float32(0)
    for t in range(len(triples)):
        i, j, k = triples[t, 0], triples[t, 1], triples[t, 2]
        ux, uy, uz = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
        vx, vy, vz = points[k, 0] - points[i, 0], points[k, 1] - points[i, 1], points[k, 2] - points[i, 2]
        a, b, c = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        norm = np.sqrt(a * a + b * b + c * c) + np.float32(1e-12)
        a, b, c = a / norm, b / norm, c / norm
        d = -(a * points[i, 0] + b * points[i, 1] + c * points[i, 2])
        count = 0
        for p in range(n):
            count += abs(a * points[p, 0] + b * points[p, 1] + c * points[p, 2] + d) < threshold
        if count > best_count:
            best_count = count
            ba, bb, bc, bd = a, b, c, d
    centre = np.zeros(3)
    cov = np.zeros((3, 3))
    inlier = np.empty(n, np.bool_)
    total = 0
    for p in range(n):
        inlier[p] = abs(ba * points[p, 0] + bb * points[p, 1] + bc * points[p, 2] + bd) < threshold
        if inlier[p]:
            total += 1
            for a_ in range(3):
                centre[a_] += points[p, a_]
    centre /= total
    for p in range(n):
        if inlier[p]:
            for a_ in range(3):
                for b_ in range(3):
                    cov[a_, b_] += (points[p, a_] - centre[a_]) * (points[p, b_] - centre[b_])
    _, vec = np.linalg.eigh(cov / total)
    normal = vec[:, 0] * np.sign(vec[2, 0])
    offset = -(normal[0] * centre[0] + normal[1] * centre[1] + normal[2] * centre[2])
    height = np.empty(n, np.float32)
    for p in range(n):
        height[p] = abs(normal[0] * points[p, 0] + normal[1] * points[p, 1] + normal[2] * points[p, 2] + offset)
    return normal.astype(np.float32), height, best_count
