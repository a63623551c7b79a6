"""The attention scores of a long prompt in a bfloat16 model with rotary position embeddings.

https://github.com/sgl-project/sglang-jax/issues/1472
"""
import jax
import jax.numpy as jnp
import numpy as np

CONFIG = {"hidden": 32, "num_heads": 2, "head_dim": 16, "rope_theta": 10000.0,
          "rope_scaling": {"rope_type": "linear", "factor": 1.0}, "dtype": jnp.bfloat16}


def _rotate(x, cos, sin):
    x1, x2 = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], axis=-1)


class RotaryEmbedding:
    def __init__(self, head_size, base, dtype):
        self.head_size = head_size
        self.base = base
        self.dtype = dtype
        self._inv_freq_np = self._compute_inv_freq(base)

    def _compute_inv_freq(self, base):
        exponent = np.arange(0, self.head_size, 2, dtype=np.float32) / self.head_size
        return (1.0 / base ** exponent).astype(np.float32)

    def __call__(self, positions, query, key):
        inv_freq = jnp.asarray(self._inv_freq_np, dtype=self.dtype)
        freqs = jnp.einsum("n,d->nd", positions.astype(jnp.float32), inv_freq)
        cos = jnp.cos(freqs).astype(self.dtype)[:, None, :]
        sin = jnp.sin(freqs).astype(self.dtype)[:, None, :]
        return _rotate(query, cos, sin), _rotate(key, cos, sin)


class LinearScalingRotaryEmbedding(RotaryEmbedding):
    def __init__(self, head_size, base, dtype, factor):
        self.factor = factor
        super().__init__(head_size, base, dtype)

    def _compute_inv_freq(self, base):
        return super()._compute_inv_freq(base) / np.float32(self.factor)


def get_rope(config):
    scaling = config["rope_scaling"]
    args = config["head_dim"], config["rope_theta"], config["dtype"]
    if scaling is None:
        return RotaryEmbedding(*args)
    return LinearScalingRotaryEmbedding(*args, scaling["factor"])


class Attention:
    def __init__(self, config):
        self.config = config
        self.rope = get_rope(config)

    def __call__(self, params, positions, hidden):
        n, heads = hidden.shape[0], self.config["num_heads"]
        q = (hidden @ params["q_proj"]).reshape(n, heads, -1)
        k = (hidden @ params["k_proj"]).reshape(n, heads, -1)
        q, k = self.rope(positions, q, k)
        scale = self.config["head_dim"] ** -0.5
        scores = jnp.einsum("qhd,khd->hqk", q, k, preferred_element_type=jnp.float32) * scale
        causal = positions[:, None] >= positions[None, :]
        return jnp.where(causal[None], scores, 0.0), q, k


def main(positions, hidden, q_proj, k_proj):
    dtype = CONFIG["dtype"]
    params = {"q_proj": q_proj.astype(dtype), "k_proj": k_proj.astype(dtype)}
    scores, q, k = Attention(CONFIG)(params, positions, hidden.astype(dtype))
    return scores, q, k


def inputs():
    keys = jax.random.split(jax.random.key(3), 3)
    positions = jnp.array([0, 5, 130, 777, 1857, 2911, 4095, 8190], jnp.int32)
    hidden = jax.random.normal(keys[0], (8, 32), jnp.float32)
    q_proj = jax.random.normal(keys[1], (32, 32), jnp.float32) * 0.25
    return positions, hidden, q_proj, jax.random.normal(keys[2], (32, 32), jnp.float32) * 0.25


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
