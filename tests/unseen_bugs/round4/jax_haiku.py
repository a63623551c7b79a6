"""Modules that create their parameters on the first call, as functions of a key and a batch.

https://github.com/google-deepmind/dm-haiku/issues/36
"""
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

FRAMES = []


class Frame:
    def __init__(self, params, key):
        self.params, self.key, self.scope = params, key, []

    def next_key(self):
        self.key, key = jax.random.split(self.key)
        return key


def get_parameter(name, shape, dtype, init):
    frame = FRAMES[-1]
    path = "/".join(frame.scope + [name])
    if path not in frame.params:
        frame.params[path] = init(frame.next_key(), shape, dtype)
    return frame.params[path]


class TruncatedNormal:
    def __init__(self, stddev=1.0, mean=0.0):
        self.stddev, self.mean = stddev, mean

    def __call__(self, key, shape, dtype):
        unscaled = jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype)
        return self.stddev * unscaled + self.mean


class Constant:
    def __init__(self, constant):
        self.constant = constant

    def __call__(self, key, shape, dtype):
        return jnp.full(shape, self.constant, dtype)


class Linear:
    def __init__(self, output_size, name, w_init=None, with_bias=True):
        self.output_size, self.name = output_size, name
        self.w_init, self.with_bias = w_init, with_bias

    def __call__(self, x):
        FRAMES[-1].scope.append(self.name)
        input_size = x.shape[-1]
        w_init = self.w_init
        if w_init is None:
            stddev = 1.0 / np.sqrt(input_size)
            w_init = TruncatedNormal(stddev=stddev)
        out = x @ get_parameter("w", (input_size, self.output_size), x.dtype, w_init)
        if self.with_bias:
            b = get_parameter("b", (self.output_size,), x.dtype, Constant(0.1))
            out = out + b
        FRAMES[-1].scope.pop()
        return out


def mlp(x, sizes=(8, 8, 3)):
    for i, size in enumerate(sizes):
        x = Linear(size, "linear_%d" % i)(x)
        if i + 1 < len(sizes):
            x = jax.nn.relu(x)
    return x


def transform(f):
    def init(key, *args):
        FRAMES.append(Frame({}, key))
        f(*args)
        return FRAMES.pop().params

    def apply(params, *args):
        FRAMES.append(Frame(dict(params), None))
        out = f(*args)
        FRAMES.pop()
        return out

    return init, apply


def main(key, x):
    init, apply = transform(mlp)
    params = init(key, x)
    return (apply(params, x),) + tuple(params[k] for k in sorted(params))


def inputs():
    x = np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    return jax.random.PRNGKey(428), jnp.asarray(x)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
