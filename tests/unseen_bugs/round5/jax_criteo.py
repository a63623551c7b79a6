"""Evaluation of a click-through model: the loss is summed over the batches of a large split.

https://github.com/mlcommons/algorithmic-efficiency/pull/525
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

BATCH, NUM_BATCHES = 8192, 3000


def sigmoid_binary_cross_entropy(logits, targets):
    return jnp.maximum(logits, 0) - logits * targets + jnp.log1p(jnp.exp(-jnp.abs(logits)))


class Workload:
    def __init__(self, num_features):
        self.num_features = num_features

    def model_fn(self, params, batch):
        return batch["inputs"] @ params["w"] + params["b"]

    def loss_fn(self, targets, logits, mask):
        per_example = sigmoid_binary_cross_entropy(logits, targets) * mask
        return {"summed": per_example.sum(), "n_valid_examples": mask.sum()}

    @functools.partial(jax.jit, static_argnums=0)
    def eval_batch_jitted(self, params, batch):
        logits = self.model_fn(params, batch)
        loss = self.loss_fn(batch["targets"], logits, batch["weights"])
        return jnp.stack([loss["summed"], loss["n_valid_examples"]])

    def eval_batch(self, params, batch):
        return self.eval_batch_jitted(params, batch)

    def eval_model_on_split(self, params, batches, num_batches):
        totals = 0.0
        for i in range(num_batches):
            totals += self.eval_batch(params, batches[i % len(batches)])
        return {"loss": totals[0] / totals[1], "examples": totals[1]}


def make_batches(x, y):
    weights = np.ones(BATCH, np.float32)
    weights[-1] = 0
    count = len(y) // BATCH
    return [{"inputs": jnp.asarray(x[i * BATCH:(i + 1) * BATCH]), "targets": jnp.asarray(y[i * BATCH:(i + 1) * BATCH]),
             "weights": jnp.asarray(weights)} for i in range(count)]


def main(x, y, w):
    params = {"w": jnp.asarray(w), "b": jnp.float32(-1.0)}
    result = Workload(x.shape[1]).eval_model_on_split(params, make_batches(x, y), NUM_BATCHES)
    return result["loss"], result["examples"]


def inputs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4 * BATCH, 4)).astype(np.float32)
    y = (rng.uniform(size=4 * BATCH) < 0.3).astype(np.float32)
    return x, y, np.array([0.3, -0.2, 0.1, 0.4], np.float32)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
