"""Per-example gradient clipping for logistic regression with vmap(grad)."""
import jax
import jax.numpy as jnp

CLIP = 1.0
LR = 0.5


def loss(w, x, y):
    logit = jnp.dot(x, w)
    # log(1 + exp(z)) - y z, stable for any z
    return jax.nn.softplus(logit) - y * logit


def clipped_mean_grad(w, xs, ys):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    norms = jnp.linalg.norm(grads, axis=1, keepdims=True)
    scale = jnp.minimum(1.0, CLIP / jnp.maximum(norms, 1e-12))
    return jnp.mean(grads * scale, axis=0), norms[:, 0]


@jax.jit
def main(w, xs, labels):
    ys = labels.astype(xs.dtype)
    g, norms = clipped_mean_grad(w, xs, ys)
    w = w - LR * g
    mean_loss = jnp.mean(jax.vmap(loss, in_axes=(None, 0, 0))(w, xs, ys))
    return w, mean_loss, norms


def inputs():
    k1, k2 = jax.random.split(jax.random.PRNGKey(1))
    xs = jax.random.normal(k1, (24, 5))
    w = jax.random.normal(k2, (5,))
    labels = (xs[:, 0] > 0).astype(jnp.int32)
    return w, xs, labels
