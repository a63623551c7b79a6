"""float16 training step with loss scaling and float32 master weights."""
import jax
import jax.numpy as jnp

LR = 1e-2


def forward(params16, x16):
    w1, w2 = params16
    h = jax.nn.relu(jnp.dot(x16, w1))
    # accumulate the last product in float32, where the loss is taken
    return jnp.dot(h, w2, preferred_element_type=jnp.float32)


def scaled_loss(master, x, y, scale):
    params16 = jax.tree_util.tree_map(lambda p: p.astype(jnp.float16), master)
    pred = forward(params16, x.astype(jnp.float16))
    loss = jnp.mean((pred - y) ** 2)
    return loss * scale, loss


@jax.jit
def main(x, y, w1, w2, scale):
    master = (w1, w2)
    grads, loss = jax.grad(scaled_loss, has_aux=True)(master, x, y, scale)
    grads = jax.tree_util.tree_map(lambda g: g / scale, grads)
    finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(g)) for g in grads]))
    new = jax.tree_util.tree_map(
        lambda p, g: jnp.where(finite, p - LR * g, p), master, grads)
    scale = jnp.where(finite, scale, jnp.maximum(scale * 0.5, 1.0))
    return new[0], new[1], loss, scale


def inputs():
    k = jax.random.split(jax.random.PRNGKey(20), 3)
    x = jax.random.normal(k[0], (16, 8))
    y = x[:, :1] - x[:, 1:2]
    w1 = 0.3 * jax.random.normal(k[1], (8, 16))
    w2 = 0.3 * jax.random.normal(k[2], (16, 1))
    return x, y, w1, w2, jnp.float32(1024.0)
