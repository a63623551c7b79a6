"""A bfloat16 residual block whose layer norm is computed in float32."""
import jax
import jax.numpy as jnp


def layer_norm(x, scale, bias, eps=1e-6):
    """Statistics in float32 whatever the activations are, result in their dtype."""
    x32 = x.astype(jnp.float32)
    mean = jnp.mean(x32, axis=-1, keepdims=True)
    var = jnp.mean(jnp.square(x32 - mean), axis=-1, keepdims=True)
    y = (x32 - mean) * jax.lax.rsqrt(var + eps)
    y = y * scale + bias
    return y.astype(x.dtype)


def mlp(x, w1, w2):
    h = jnp.dot(x, w1.astype(x.dtype))
    h = jax.nn.gelu(h)
    return jnp.dot(h, w2.astype(x.dtype))


@jax.jit
def main(x, scale, bias, w1, w2):
    x = x.astype(jnp.bfloat16)
    h = layer_norm(x, scale, bias)
    return x + mlp(h, w1, w2)


def inputs():
    k = jax.random.split(jax.random.PRNGKey(7), 3)
    x = jax.random.normal(k[0], (4, 10, 16), dtype=jnp.float32)
    w1 = 0.1 * jax.random.normal(k[1], (16, 32), dtype=jnp.float32)
    w2 = 0.1 * jax.random.normal(k[2], (32, 16), dtype=jnp.float32)
    return x, jnp.ones(16), jnp.zeros(16), w1, w2
