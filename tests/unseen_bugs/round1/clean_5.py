"""One training step of a small flax network: parameters and optimizer in float32, layers
in bfloat16, loss in float32."""
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn


class MLP(nn.Module):
    widths: tuple
    classes: int
    dtype: jnp.dtype = jnp.bfloat16

    @nn.compact
    def __call__(self, x):
        x = x.astype(self.dtype)
        for w in self.widths:
            x = nn.Dense(w, dtype=self.dtype, param_dtype=jnp.float32)(x)
            x = nn.LayerNorm(dtype=self.dtype)(x)
            x = nn.relu(x)
        logits = nn.Dense(self.classes, dtype=self.dtype, param_dtype=jnp.float32)(x)
        return logits.astype(jnp.float32)


MODEL = MLP((32, 16), 5)
TX = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, weight_decay=1e-4))


def loss_fn(params, x, labels):
    logits = MODEL.apply({"params": params}, x)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    accuracy = jnp.mean(jnp.argmax(logits, -1) == labels)
    return losses.mean(), accuracy


def train_step(params, opt_state, x, labels):
    (loss, accuracy), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, labels)
    updates, opt_state = TX.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss, accuracy


def main(x, labels):
    params = MODEL.init(jax.random.key(0), x)["params"]
    opt_state = TX.init(params)
    params, opt_state, loss, accuracy = train_step(params, opt_state, x, labels)
    return params["Dense_0"]["kernel"], loss, accuracy


def inputs():
    k = jax.random.split(jax.random.key(5), 2)
    return jax.random.normal(k[0], (8, 12)), jax.random.randint(k[1], (8,), 0, 5)
