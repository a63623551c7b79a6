"""Decoding with a cache of keys and values: the new tokens are written at the end of the cache
and attend to everything before them.

https://github.com/google-deepmind/gemma/pull/409
"""
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

K_MASK = -2.3819763e38
CONFIG = {"num_heads": 2, "head_dim": 4, "embed_dim": 8, "vocab": 11, "cache_size": 12, "layers": 2}


def init_cache(config, batch_size, dtype=jnp.float32):
    shape = (batch_size, config["cache_size"], config["num_heads"], config["head_dim"])
    return {
        "v": jnp.zeros(shape, dtype=dtype),
        "k": jnp.zeros(shape, dtype=dtype),
        "end_index": jnp.zeros((batch_size,), dtype=jnp.int32),
        "positions": jnp.zeros((batch_size, config["cache_size"]), dtype=jnp.int32),
    }


def apply_rope(inputs, positions, base_frequency=10_000):
    head_dim = inputs.shape[-1]
    fraction = 2 * jnp.arange(0, head_dim // 2, dtype=jnp.float32) / head_dim
    sinusoid = positions[..., None].astype(jnp.float32) / base_frequency ** fraction
    sin, cos = jnp.sin(sinusoid)[..., None, :], jnp.cos(sinusoid)[..., None, :]
    first, second = jnp.split(inputs, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def attention(params, x, segment_pos, cache, attn_mask):
    query, key, value = jnp.einsum("BTD,SNDH->SBTNH", x, params["qkv"])
    query, key = apply_rope(query, segment_pos), apply_rope(key, segment_pos)

    cache_size = cache["v"].shape[1]
    update_index = cache["end_index"][0] % cache_size
    slice_indices = (0, update_index, 0, 0)
    value = jax.lax.dynamic_update_slice(cache["v"], value, slice_indices)
    key = jax.lax.dynamic_update_slice(cache["k"], key, slice_indices)
    positions = jax.lax.dynamic_update_slice(cache["positions"], segment_pos, slice_indices[:2])

    logits = jnp.einsum("BTNH,BSNH->BTNS", query, key) * CONFIG["head_dim"] ** -0.5
    logits = jnp.where(attn_mask[:, :, None, :], logits, K_MASK)
    probs = jax.nn.softmax(logits, axis=-1).astype(key.dtype)
    encoded = jnp.einsum("BTNS,BSNH->BTNH", probs, value)
    new_cache = {"v": value, "k": key, "positions": positions,
                 "end_index": cache["end_index"] + x.shape[1]}
    return new_cache, jnp.einsum("BTNH,NHD->BTD", encoded, params["out"])


def transformer(params, tokens, segment_pos, caches):
    x = params["embedding"][tokens] * jnp.sqrt(jnp.float32(CONFIG["embed_dim"]))
    mask = jnp.arange(CONFIG["cache_size"])[None, None, :] <= segment_pos[..., None]
    new_caches = []
    for layer, cache in zip(params["layers"], caches):
        cache, update = attention(layer, x, segment_pos, cache, mask)
        x = x + update
        new_caches.append(cache)
    return new_caches, x @ params["embedding"].T


def sample(params, prompt, steps):
    batch, length = prompt.shape
    caches = [init_cache(CONFIG, batch) for _ in params["layers"]]
    positions = jnp.broadcast_to(jnp.arange(length, dtype=jnp.int32), (batch, length))
    caches, logits = transformer(params, prompt, positions, caches)
    tokens = [jnp.argmax(logits[:, -1], axis=-1).astype(jnp.int32)]
    for step in range(steps):
        position = jnp.full((batch, 1), length + step, dtype=jnp.int32)
        caches, logits = transformer(params, tokens[-1][:, None], position, caches)
        tokens.append(jnp.argmax(logits[:, -1], axis=-1).astype(jnp.int32))
    return jnp.stack(tokens, axis=1), logits[:, -1]


def main(key, prompt):
    c = CONFIG
    keys = jax.random.split(key, 1 + 2 * c["layers"])

    def normal(k, *shape):
        return jax.random.normal(k, shape, dtype=jnp.float32) * 0.3

    params = {"embedding": normal(keys[0], c["vocab"], c["embed_dim"]),
              "layers": [{"qkv": normal(a, 3, c["num_heads"], c["embed_dim"], c["head_dim"]),
                          "out": normal(b, c["num_heads"], c["head_dim"], c["embed_dim"])}
                         for a, b in zip(keys[1::2], keys[2::2])]}
    return sample(params, prompt, steps=4)


def inputs():
    return jax.random.PRNGKey(3), jnp.array([[1, 5, 2, 9], [4, 4, 0, 7]], dtype=jnp.int32)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
