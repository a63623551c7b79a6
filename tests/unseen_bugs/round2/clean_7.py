"""One training step of a flax autoencoder: bfloat16 in the layers, float32 in the parameters,
the loss, the optimizer and the running average of the weights."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

CONFIG = {"width": 16, "code": 4, "lr": 1e-2, "ema": 0.99, "kl": 1e-3}


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.silu(nn.Dense(CONFIG["width"], dtype=jnp.bfloat16)(x))
        h = nn.LayerNorm(dtype=jnp.float32)(h)
        out = nn.Dense(2 * CONFIG["code"], dtype=jnp.bfloat16)(h)
        mean, logvar = jnp.split(out.astype(jnp.float32), 2, axis=-1)
        return mean, logvar


class Autoencoder(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x, key):
        mean, logvar = Encoder()(x)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape, mean.dtype)
        h = nn.silu(nn.Dense(CONFIG["width"], dtype=jnp.bfloat16)(z))
        return nn.Dense(self.features, dtype=jnp.float32)(h), mean, logvar


def loss_fn(params, model, x, key):
    out, mean, logvar = model.apply({"params": params}, x, key)
    kl = -0.5 * jnp.mean(jnp.sum(1 + logvar - mean ** 2 - jnp.exp(logvar), axis=-1))
    return jnp.mean(jnp.square(out - x)) + CONFIG["kl"] * kl


def main(x):
    model = Autoencoder(x.shape[-1])
    init_key, noise_key = jax.random.split(jax.random.key(3))
    params = model.init(init_key, x, noise_key)["params"]
    optimizer = optax.adam(CONFIG["lr"])
    state, average = optimizer.init(params), params
    losses = []
    for key in jax.random.split(noise_key, 2):
        loss, grads = jax.value_and_grad(loss_fn)(params, model, x, key)
        updates, state = optimizer.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        average = optax.incremental_update(params, average, 1 - CONFIG["ema"])
        losses.append(loss)
    return jnp.stack(losses), average["Dense_1"]["kernel"]


def inputs():
    return (jax.random.normal(jax.random.key(4), (12, 8), jnp.float32),)
