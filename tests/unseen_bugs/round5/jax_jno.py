"""A neural operator whose precision is chosen per model: Model.dtype(jnp.bfloat16).

https://github.com/FhG-IISB/jNO/pull/65
"""
import jax
import jax.numpy as jnp
import numpy as np


def glorot(key, n_in, n_out):
    return jax.random.normal(key, (n_in, n_out), jnp.float32) * np.sqrt(2 / (n_in + n_out)).astype(np.float32)


class Model:
    """Layers of a perceptron and the precision in which the user wants them."""

    def __init__(self, widths, seed=0):
        keys = jax.random.split(jax.random.PRNGKey(seed), len(widths) - 1)
        self.params = [{"w": glorot(k, a, b), "b": jnp.zeros((b,), jnp.float32)}
                       for k, a, b in zip(keys, widths[:-1], widths[1:])]
        self.compute_dtype = None

    def dtype(self, dtype):
        self.compute_dtype = jnp.dtype(dtype)
        self.params = jax.tree_util.tree_map(lambda p: p.astype(self.compute_dtype), self.params)
        return self

    def apply(self, x):
        for i, layer in enumerate(self.params):
            x = x @ layer["w"] + layer["b"]
            if i < len(self.params) - 1:
                x = jnp.tanh(x)
        return x


class TraceEvaluator:
    """Evaluates the models at the points of a domain."""

    def __init__(self, domain):
        self.domain = domain

    def points(self):
        return jnp.stack([self.domain["x"], self.domain["t"]], axis=-1)

    def call_model(self, model):
        args = self.points()
        return model.apply(args)[..., 0]


def operator(widths=(2, 32, 32, 1)):
    return Model(widths).dtype(jnp.bfloat16)


def main(x, t):
    model = operator()
    evaluator = TraceEvaluator({"x": x, "t": t})
    return evaluator.call_model(model)


def inputs():
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, 40).astype(np.float32), rng.uniform(0, 1, 40).astype(np.float32)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
