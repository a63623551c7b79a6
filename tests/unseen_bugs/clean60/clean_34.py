"""Reparameterised VAE loss with explicit PRNG key splitting."""
import jax
import jax.numpy as jnp

SAMPLES = 4


def encode(x, w_mu, w_logvar):
    return x @ w_mu, x @ w_logvar


def reparameterise(key, mu, logvar):
    eps = jax.random.normal(key, mu.shape, dtype=mu.dtype)
    return mu + jnp.exp(0.5 * logvar) * eps


def kl_divergence(mu, logvar):
    return -0.5 * jnp.sum(1.0 + logvar - mu ** 2 - jnp.exp(logvar), axis=-1)


def bce_with_logits(logits, targets):
    return jnp.sum(jax.nn.softplus(logits) - targets * logits, axis=-1)


def main(key, x, w_mu, w_logvar, w_dec):
    mu, logvar = encode(x, w_mu, w_logvar)
    keys = jax.random.split(key, SAMPLES)

    def one(k):
        k_z, k_drop = jax.random.split(k)
        z = reparameterise(k_z, mu, logvar)
        keep = jax.random.bernoulli(k_drop, 0.9, z.shape)
        z = jnp.where(keep, z / 0.9, 0.0)
        return bce_with_logits(z @ w_dec, x)

    recon = jax.vmap(one)(keys).mean(axis=0)
    elbo = -(recon + kl_divergence(mu, logvar))
    return elbo.mean(), mu, logvar


def inputs():
    k = jax.random.split(jax.random.PRNGKey(11), 4)
    x = jax.random.bernoulli(k[0], 0.4, (10, 12)).astype(jnp.float32)
    return (jax.random.PRNGKey(12), x, 0.2 * jax.random.normal(k[1], (12, 3)),
            0.2 * jax.random.normal(k[2], (12, 3)), 0.2 * jax.random.normal(k[3], (3, 12)))
