"""k-means on two-dimensional points with JAX."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

CENTRES = [(0.0, 0.0), (6.0, 1.0), (2.0, 7.0)]


def make_points(per_cluster=200, seed=1):
    rng = np.random.default_rng(seed)
    pts = [rng.normal(c, 0.6, (per_cluster, 2)) for c in CENTRES]
    pts = np.concatenate(pts)
    rng.shuffle(pts)
    return jnp.asarray(pts, dtype=jnp.float32)


def squared_distances(points, centres):
    diff = points[:, None, :] - centres[None, :, :]
    return jnp.sum(diff * diff, axis=-1)


@partial(jax.jit, static_argnames="k")
def update(points, centres, k):
    label = jnp.argmin(squared_distances(points, centres), axis=1)
    member = jax.nn.one_hot(label, k, dtype=points.dtype)
    count = member.sum(axis=0)
    new = (member.T @ points) / jnp.maximum(count, 1)[:, None]
    return jnp.where(count[:, None] > 0, new, centres), label


def kmeans(points, k, rounds=25):
    centres = points[:1]
    for _ in range(k - 1):  # farthest point first
        far = squared_distances(points, centres).min(axis=1).argmax()
        centres = jnp.concatenate([centres, points[far][None]])
    for _ in range(rounds):
        new, label = update(points, centres, k)
        if bool(jnp.allclose(new, centres, atol=1e-6)):
            break
        centres = new
    return centres, label


def main():
    points = make_points()
    centres, label = kmeans(points, 3)
    order = np.argsort(np.asarray(centres[:, 0]))
    sizes = np.bincount(np.asarray(label), minlength=3)
    for i in order:
        x, y = np.asarray(centres[i])
        print(f"centre ({x:5.2f}, {y:5.2f})  {sizes[i]} points")
    spread = jnp.sqrt(squared_distances(points, centres).min(axis=1)).mean()
    print(f"mean distance {float(spread):.3f}, {centres.dtype}")


if __name__ == "__main__":
    main()
