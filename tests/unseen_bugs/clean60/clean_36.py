"""Exponential moving average of parameters along an SGD-with-momentum run."""
import jax
import jax.numpy as jnp
import optax

DECAY = 0.95
tx = optax.sgd(0.05, momentum=0.9)


def forward(params, x):
    h = jnp.tanh(x @ params["w1"])
    return (h @ params["w2"])[:, 0]


def loss_fn(params, x, y):
    return jnp.mean(optax.huber_loss(forward(params, x), y))


def ema_update(avg, new):
    return jax.tree_util.tree_map(lambda a, b: DECAY * a + (1.0 - DECAY) * b, avg, new)


def main(x, y, w1, w2):
    params = {"w1": w1, "w2": w2}

    def step(carry, _):
        p, avg, opt_state = carry
        loss, grads = jax.value_and_grad(loss_fn)(p, x, y)
        updates, opt_state = tx.update(grads, opt_state)
        p = optax.apply_updates(p, updates)
        return (p, ema_update(avg, p), opt_state), loss

    carry = (params, params, tx.init(params))
    (params, avg, _), losses = jax.lax.scan(step, carry, None, length=25)
    return losses, avg["w1"], avg["w2"], loss_fn(avg, x, y)


def inputs():
    k = jax.random.split(jax.random.PRNGKey(14), 3)
    x = jax.random.normal(k[0], (20, 3))
    return (x, jnp.sin(x[:, 0]), 0.5 * jax.random.normal(k[1], (3, 8)),
            0.5 * jax.random.normal(k[2], (8, 1)))
