"""Jacobian of a function with a known sparsity, by forward mode on a few directions: the
columns that touch no common row share one direction.

https://github.com/mfschubert/sparsejac/issues/11
"""
import jax
import jax.experimental.sparse as jsparse
import jax.numpy as jnp
import numpy as onp

jax.config.update("jax_enable_x64", True)


def _input_connectivity_from_sparsity(sparsity):
    return (sparsity.T @ sparsity).astype(bool)


def _greedy_color(connectivity):
    n = connectivity.shape[0]
    coloring = onp.full(n, -1)
    order = onp.argsort(-connectivity.sum(axis=1), kind="stable")
    for i in order:
        taken = set(coloring[connectivity[i]])
        coloring[i] = next(c for c in range(n) if c not in taken)
    return coloring, onp.unique(coloring).size


def _expand_jacfwd_jac(compressed_jac, input_coloring, indices, shape):
    row, col = indices.T
    data = compressed_jac[row, input_coloring[col]]
    return jsparse.BCOO((data, indices), shape=shape)


def jacfwd(fn, sparsity, argnums=0):
    connectivity = _input_connectivity_from_sparsity(sparsity)
    input_coloring, ncolors = _greedy_color(connectivity)
    input_coloring = jnp.asarray(input_coloring)
    indices = jnp.stack([jnp.asarray(i) for i in onp.nonzero(sparsity)], axis=1)

    basis = jnp.arange(ncolors)[jnp.newaxis, :] == input_coloring[:, jnp.newaxis]
    basis = basis.astype(jnp.float32)

    def jacfwd_fn(*args):
        x = args[argnums]
        if x.shape != (sparsity.shape[1],):
            raise ValueError("`x` must be rank-1 with the size of the columns")

        def _fn(x):
            return fn(*args[:argnums], x, *args[argnums + 1:])

        def _jvp_fn(tangents):
            _, tangents_out = jax.jvp(_fn, (x,), (tangents,))
            return tangents_out

        compressed_jac = jax.vmap(_jvp_fn, in_axes=1)(basis).T
        if compressed_jac.shape != (sparsity.shape[0], ncolors):
            raise ValueError("invalid compressed Jacobian shape")
        return _expand_jacfwd_jac(compressed_jac, input_coloring, indices, sparsity.shape)

    return jacfwd_fn


def residual(u, source):
    """Nonlinear diffusion on a line, three-point stencil."""
    padded = jnp.pad(u, 1)
    return padded[2:] - 2.0 * u + padded[:-2] + 0.1 * u ** 3 - source


def main(u, source):
    n = u.shape[0]
    sparsity = onp.eye(n) + onp.eye(n, k=1) + onp.eye(n, k=-1)
    jac = jacfwd(residual, sparsity, argnums=0)(u, source)
    return jac.todense()


def inputs():
    return (jax.random.normal(jax.random.key(4), (12,), jnp.float64),
            jnp.linspace(0.0, 1.0, 12, dtype=jnp.float64))


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
