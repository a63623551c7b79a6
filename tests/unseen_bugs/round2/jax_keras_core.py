"""An attention block of a small layer library on JAX, under a policy that computes in half
precision and keeps the variables in single precision.

https://github.com/keras-team/keras-core/pull/410
"""
import jax
import jax.numpy as jnp


class DTypePolicy:
    def __init__(self, name):
        mixed = name.startswith("mixed_")
        self.compute_dtype = name[len("mixed_"):] if mixed else name
        self.variable_dtype = "float32" if mixed else name


POLICY = DTypePolicy("mixed_float16")


class Layer:
    def __init__(self, seed=0):
        self.dtype_policy = POLICY
        self.key = jax.random.key(seed)

    def add_weight(self, shape):
        self.key, key = jax.random.split(self.key)
        scale = shape[0] ** -0.5
        return jax.random.normal(key, shape, self.dtype_policy.variable_dtype) * scale

    def __call__(self, inputs, **kwargs):
        inputs = jax.tree.map(lambda x: x.astype(self.dtype_policy.compute_dtype), inputs)
        return self.call(inputs, **kwargs)


class Dense(Layer):
    def __init__(self, inputs, units, seed):
        super().__init__(seed)
        self.kernel = self.add_weight((inputs, units))

    def call(self, inputs):
        return inputs @ self.kernel.astype(inputs.dtype)


class Softmax(Layer):
    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis

    def call(self, inputs, mask=None):
        if mask is not None:
            adder = (1.0 - mask.astype(inputs.dtype)) * (-1e9)
            inputs += adder
        if isinstance(self.axis, (tuple, list)) and len(self.axis) > 1:
            return jnp.exp(inputs - jax.nn.logsumexp(inputs, axis=self.axis, keepdims=True))
        return jax.nn.softmax(inputs, axis=self.axis)


class Attention(Layer):
    def __init__(self, width, heads, seed):
        super().__init__(seed)
        self.heads = heads
        self.query, self.key_, self.value = (Dense(width, width, seed + i) for i in range(3))
        self.output = Dense(width, width, seed + 3)
        self.softmax = Softmax(axis=-1)

    def split(self, x):
        b, t, w = x.shape
        return x.reshape(b, t, self.heads, w // self.heads).transpose(0, 2, 1, 3)

    def call(self, x, padding_mask):
        q, k, v = (self.split(layer(x)) for layer in (self.query, self.key_, self.value))
        scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        mask = jnp.logical_and(padding_mask[:, None, None, :], causal)
        weights = self.softmax(scores, mask=mask)
        out = (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        return x + self.output(out)


def main(tokens, padding_mask):
    block = Attention(width=16, heads=2, seed=5)
    out = block(tokens, padding_mask=padding_mask)
    return out.astype(jnp.float32)


def inputs():
    mask = jnp.arange(6)[None, :] < jnp.array([[6], [4]])
    return jax.random.normal(jax.random.key(7), (2, 6, 16), jnp.float32), mask


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
