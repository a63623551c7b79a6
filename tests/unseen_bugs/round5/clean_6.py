"""Accuracy and entropy of a masked batch: counts divided by counts, one-hot targets."""
import jax
import jax.numpy as jnp
import numpy as np


def masked_mean(values, mask):
    return jnp.where(mask, values, 0).sum() / jnp.maximum(mask.sum(), 1)


def metrics(logits, labels, lengths):
    mask = jnp.arange(labels.shape[1])[None, :] < lengths[:, None]
    target = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    logp = jax.nn.log_softmax(logits)
    correct = (logits.argmax(-1) == labels) & mask
    return {"loss": masked_mean(-(target * logp).sum(-1), mask),
            "accuracy": correct.sum() / mask.sum(),
            "tokens": mask.sum(dtype=jnp.int32)}


def main(logits, labels, lengths):
    m = metrics(logits, labels, lengths)
    return m["loss"], m["accuracy"], m["tokens"]


def inputs():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(3, 7, 5)).astype(np.float32), rng.integers(0, 5, (3, 7)).astype(np.int32),
            np.array([7, 4, 2], np.int32))
