"""A layer-normalised MLP of Flax modules, initialised and run in one precision.

https://github.com/NVIDIA/TransformerEngine/issues/1451
"""
from typing import Any, Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

CONFIG = {"hidden": 16, "mlp_dim": 32, "layers": 2, "dtype": jnp.bfloat16}


class LayerNorm(nn.Module):
    epsilon: float = 1e-6
    dtype: Any = jnp.float32
    scale_init: Callable = nn.initializers.ones

    @nn.compact
    def __call__(self, x):
        features = x.shape[-1]
        scale = self.param("scale", self.scale_init, (features,), jnp.float32)
        y = x.astype(jnp.float32)
        mean = y.mean(-1, keepdims=True)
        var = jnp.square(y - mean).mean(-1, keepdims=True)
        y = (y - mean) * jax.lax.rsqrt(var + self.epsilon)
        return (y * scale.astype(jnp.float32)).astype(self.dtype)


class DenseGeneral(nn.Module):
    features: int
    dtype: Any = jnp.float32
    use_bias: bool = True
    kernel_init: Callable = nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
    bias_init: Callable = nn.initializers.zeros

    @nn.compact
    def __call__(self, x):
        kernel_shape = (x.shape[-1], self.features)
        kernel = self.param("kernel", self.kernel_init, kernel_shape, jnp.float32)
        y = jnp.dot(x.astype(self.dtype), kernel.astype(self.dtype))
        if self.use_bias:
            bias = self.param("bias", self.bias_init, (self.features,), jnp.float32)
            y = y + bias.astype(self.dtype)
        return y


class LayerNormMLP(nn.Module):
    intermediate_dim: int
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x):
        y = LayerNorm(dtype=self.dtype)(x)
        y = DenseGeneral(self.intermediate_dim, dtype=self.dtype, name="wi")(y)
        y = nn.gelu(y)
        return x + DenseGeneral(x.shape[-1], dtype=self.dtype, name="wo")(y)


class Model(nn.Module):
    config: Any

    @nn.compact
    def __call__(self, x):
        for i in range(self.config["layers"]):
            x = LayerNormMLP(self.config["mlp_dim"], self.config["dtype"], name="layer_%d" % i)(x)
        return x


def main(key, x):
    model = Model(CONFIG)
    x = x.astype(CONFIG["dtype"])
    variables = model.init(key, x)
    return (model.apply(variables, x),) + tuple(jax.tree.leaves(variables["params"]))


def inputs():
    return jax.random.PRNGKey(3), jax.random.normal(jax.random.PRNGKey(4), (5, 16))


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
