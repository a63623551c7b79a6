"""Linear regression by gradient descent with jax.grad and lax.scan."""
import jax
import jax.numpy as jnp

LR = 0.1
STEPS = 50


def predict(params, x):
    return x @ params["w"] + params["b"]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def fit(params, x, y):
    def step(p, _):
        loss, g = jax.value_and_grad(loss_fn)(p, x, y)
        p = jax.tree_util.tree_map(lambda a, b: a - LR * b, p, g)
        return p, loss

    return jax.lax.scan(step, params, None, length=STEPS)


def main(x, y, w0):
    params = {"w": w0, "b": jnp.zeros(())}
    params, losses = fit(params, x, y)
    return params["w"], params["b"], losses


def inputs():
    kx, kn = jax.random.split(jax.random.PRNGKey(0))
    x = jax.random.normal(kx, (32, 4))
    y = x @ jnp.array([1.0, -2.0, 0.5, 3.0]) + 0.7 + 0.01 * jax.random.normal(kn, (32,))
    return x, y, jnp.zeros(4)
