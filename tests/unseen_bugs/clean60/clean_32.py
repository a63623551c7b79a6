"""Constant-velocity Kalman filter over a track of noisy positions."""
import jax
import jax.numpy as jnp

DT = 0.1


def model():
    F = jnp.array([[1.0, DT], [0.0, 1.0]])
    H = jnp.array([[1.0, 0.0]])
    Q = 0.05 * jnp.array([[DT ** 3 / 3, DT ** 2 / 2], [DT ** 2 / 2, DT]])
    return F, H, Q


@jax.jit
def main(zs, x0, P0, R):
    F, H, Q = model()
    eye = jnp.eye(2)

    def step(carry, z):
        x, P = carry
        x = F @ x
        P = F @ P @ F.T + Q
        innov = z - H @ x
        S = H @ P @ H.T + R
        K = jnp.linalg.solve(S, H @ P).T
        x = x + K @ innov
        # Joseph form keeps P symmetric and positive
        A = eye - K @ H
        P = A @ P @ A.T + K @ R @ K.T
        ll = -0.5 * (innov @ jnp.linalg.solve(S, innov)
                     + jnp.linalg.slogdet(S)[1] + jnp.log(2.0 * jnp.pi))
        return (x, P), (x, ll)

    (x, P), (xs, lls) = jax.lax.scan(step, (x0, P0), zs)
    return xs, P, jnp.sum(lls)


def inputs():
    t = jnp.arange(30) * DT
    noise = 0.1 * jax.random.normal(jax.random.PRNGKey(9), t.shape)
    zs = (1.0 + 0.5 * t + noise)[:, None]
    return zs, jnp.zeros(2), jnp.eye(2), jnp.array([[0.01]])
