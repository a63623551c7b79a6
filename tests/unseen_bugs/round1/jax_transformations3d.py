"""Finds the rigid transformation that lays one set of points on another, and the remaining
distance after it.

https://github.com/cpgoodri/jax_transformations3d/issues/1
"""
import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_enable_x64", True)


def vector_norm(data, axis=None):
    return jnp.sqrt(jnp.sum(data * data, axis=axis))


def affine_matrix_from_points(v0, v1, scale=True):
    """Return the matrix to register two point sets, of shape (ndims, n)."""
    v0 = jnp.array(v0, dtype=jnp.float64, copy=True)
    v1 = jnp.array(v1, dtype=jnp.float64, copy=True)
    ndims = v0.shape[0]
    if ndims < 2 or v0.shape[1] < ndims or v0.shape != v1.shape:
        raise ValueError("input arrays are of wrong shape or type")

    # move centroids to origin
    t0 = -jnp.mean(v0, axis=1)
    M0 = jnp.identity(ndims + 1)
    M0 = M0.at[:ndims, ndims].set(t0)
    v0 = v0 + t0.reshape(ndims, 1)
    t1 = -jnp.mean(v1, axis=1)
    M1 = jnp.identity(ndims + 1)
    M1 = M1.at[:ndims, ndims].set(t1)
    v1 = v1 + t1.reshape(ndims, 1)

    # rigid transformation via SVD of covariance matrix
    u, s, vh = jnp.linalg.svd(jnp.dot(v1, v0.T))
    R = jnp.dot(u, vh)

    def flip(R_s):
        R, s = R_s
        R = R - jnp.outer(u[:, ndims - 1], vh[ndims - 1, :] * 2.0)
        return R, s.at[-1].multiply(-1.0)

    R, s = lax.cond(jnp.linalg.det(R) < 0.0, flip, lambda R_s: R_s, (R, s))
    M = jnp.identity(ndims + 1)
    M = M.at[:ndims, :ndims].set(R)

    if scale:
        M = M.at[:ndims, :ndims].multiply(jnp.sqrt(jnp.sum(v1 * v1) / jnp.sum(v0 * v0)))

    # move centroids back
    M = jnp.dot(jnp.linalg.inv(M1), jnp.dot(M, M0))
    return M / M[ndims, ndims]


def superimposition_matrix(v0, v1, scale=False):
    v0 = v0[:3]
    v1 = v1[:3]
    return affine_matrix_from_points(v0, v1, scale=scale)


def apply_matrix(M, points):
    return jnp.dot(M[:3, :3], points) + M[:3, 3:]


def main(v0, v1):
    M = superimposition_matrix(v0, v1, scale=True)
    moved = apply_matrix(M, v0)
    return M, vector_norm(moved - v1, axis=0)


def inputs():
    k = jax.random.split(jax.random.key(2), 2)
    v0 = jax.random.normal(k[0], (3, 9), jnp.float32)
    rot = jnp.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], jnp.float32)
    v1 = rot @ v0 * 1.5 + jnp.array([[1.0], [2.0], [3.0]], jnp.float32)
    return v0, v1 + jax.random.normal(k[1], (3, 9), jnp.float32) * 0.01


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
