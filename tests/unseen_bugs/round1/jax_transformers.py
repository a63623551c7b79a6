"""A small transformer block with configurable dtype of computation, initialised and then
trained for a few steps of gradient descent; returns the query kernel before and after,
and the losses.

https://github.com/huggingface/transformers/pull/13098
"""
from typing import Any, Callable

import jax
import jax.numpy as jnp
from flax import linen as nn

CONFIG = {"hidden_size": 16, "intermediate": 32, "num_heads": 2, "initializer_range": 0.02,
          "layer_norm_eps": 1e-5}


class Dense(nn.Module):
    features: int
    dtype: Any = jnp.float32
    kernel_init: Callable = nn.initializers.lecun_normal()
    bias_init: Callable = nn.initializers.zeros

    @nn.compact
    def __call__(self, inputs):
        inputs = jnp.asarray(inputs, self.dtype)
        kernel = self.param("kernel", self.kernel_init, (inputs.shape[-1], self.features))
        bias = self.param("bias", self.bias_init, (self.features,))
        y = inputs @ jnp.asarray(kernel, self.dtype)
        return y + jnp.asarray(bias, self.dtype)


class FlaxSelfAttention(nn.Module):
    config: dict
    dtype: Any = jnp.float32

    def setup(self):
        init = jax.nn.initializers.normal(self.config["initializer_range"], self.dtype)
        size = self.config["hidden_size"]
        self.query = Dense(size, dtype=self.dtype, kernel_init=init)
        self.key = Dense(size, dtype=self.dtype, kernel_init=init)
        self.value = Dense(size, dtype=self.dtype, kernel_init=init)

    def __call__(self, h):
        heads = self.config["num_heads"]
        q, k, v = (m(h).reshape(h.shape[0], h.shape[1], heads, -1)
                   for m in (self.query, self.key, self.value))
        w = nn.dot_product_attention_weights(q, k, dtype=self.dtype)
        out = jnp.einsum("bhqk,bkhd->bqhd", w, v)
        return out.reshape(h.shape)


class FlaxBlock(nn.Module):
    config: dict
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, h):
        eps = self.config["layer_norm_eps"]
        a = FlaxSelfAttention(self.config, self.dtype, name="attention")(h)
        h = nn.LayerNorm(epsilon=eps, dtype=self.dtype)(h + a)
        m = nn.gelu(Dense(self.config["intermediate"], dtype=self.dtype)(h))
        return h + Dense(self.config["hidden_size"], dtype=self.dtype)(m)


def main(x, target):
    model = FlaxBlock(CONFIG, jnp.bfloat16)
    params = model.init(jax.random.key(0), x)["params"]
    first = params["attention"]["query"]["kernel"]

    def loss_fn(p):
        out = model.apply({"params": p}, x).astype(jnp.float32)
        return jnp.mean((out - target) ** 2)

    losses = []
    for _ in range(4):
        loss, grads = jax.value_and_grad(loss_fn)(params)
        params = jax.tree.map(lambda p, g: (p - 1e-3 * g).astype(p.dtype), params, grads)
        losses.append(loss)
    return first, params["attention"]["query"]["kernel"], jnp.stack(losses)


def inputs():
    k = jax.random.split(jax.random.key(1), 2)
    return (jax.random.normal(k[0], (2, 6, 16), jnp.bfloat16),
            jax.random.normal(k[1], (2, 6, 16), jnp.float32))


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
