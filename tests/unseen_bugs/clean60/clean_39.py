"""Ridge-penalised Poisson regression by Newton's method with jax.hessian."""
import jax
import jax.numpy as jnp

RIDGE = 1e-2
ITERS = 8


def neg_log_lik(beta, X, counts):
    eta = X @ beta
    return jnp.mean(jnp.exp(eta) - counts * eta) + 0.5 * RIDGE * jnp.sum(beta ** 2)


def newton_step(beta, X, counts):
    g = jax.grad(neg_log_lik)(beta, X, counts)
    H = jax.hessian(neg_log_lik)(beta, X, counts)
    return beta - jnp.linalg.solve(H, g)


@jax.jit
def main(X, counts):
    y = counts.astype(X.dtype)
    beta0 = jnp.zeros(X.shape[1], dtype=X.dtype)
    beta = jax.lax.fori_loop(0, ITERS, lambda i, b: newton_step(b, X, y), beta0)
    grad_norm = jnp.linalg.norm(jax.grad(neg_log_lik)(beta, X, y))
    return beta, jnp.exp(X @ beta), grad_norm


def inputs():
    k1, k2 = jax.random.split(jax.random.PRNGKey(19))
    X = jnp.concatenate([jnp.ones((40, 1)), 0.5 * jax.random.normal(k1, (40, 2))], axis=1)
    rate = jnp.exp(X @ jnp.array([0.5, 1.0, -0.6]))
    return X, jax.random.poisson(k2, rate)
