"""One Adam step of a flax MLP classifier."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class MLP(nn.Module):
    hidden: int = 16
    classes: int = 3

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(self.hidden)(x))
        x = nn.relu(nn.Dense(self.hidden)(x))
        return nn.Dense(self.classes)(x)


model = MLP()
tx = optax.adam(1e-3)


def main(key, x, y):
    variables = model.init(key, x)
    params = variables["params"]
    opt_state = tx.init(params)

    def loss_fn(p):
        logits = model.apply({"params": p}, x)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
        return losses.mean(), logits

    (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    params = optax.apply_updates(params, updates)
    acc = jnp.mean(jnp.argmax(logits, axis=-1) == y)
    return loss, acc, optax.tree.norm(grads), params["Dense_0"]["kernel"]


def inputs():
    key = jax.random.PRNGKey(2)
    x = jax.random.normal(jax.random.PRNGKey(3), (16, 6))
    y = jnp.arange(16, dtype=jnp.int32) % 3
    return key, x, y
