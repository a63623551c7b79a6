"""Mixed-precision flax training step: bfloat16 compute, float32 params and loss."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Net(nn.Module):
    dtype: jnp.dtype = jnp.bfloat16

    @nn.compact
    def __call__(self, x):
        x = x.astype(self.dtype)
        x = nn.Dense(32, dtype=self.dtype, param_dtype=jnp.float32)(x)
        x = nn.gelu(x)
        x = nn.Dense(10, dtype=self.dtype, param_dtype=jnp.float32)(x)
        return x.astype(jnp.float32)      # logits in float32 for the softmax


model = Net()
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.01))


@jax.jit
def train_step(params, opt_state, x, y):
    def loss_fn(p):
        logits = model.apply({"params": p}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main(key, x, y):
    params = model.init(key, x)["params"]
    opt_state = tx.init(params)
    params, opt_state, loss = train_step(params, opt_state, x, y)
    return loss, params["Dense_0"]["kernel"], params["Dense_1"]["bias"]


def inputs():
    x = jax.random.normal(jax.random.PRNGKey(4), (8, 12), dtype=jnp.float32)
    return jax.random.PRNGKey(5), x, jnp.arange(8, dtype=jnp.int32)
