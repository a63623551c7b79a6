"""Softmax in float16: exponentials, sums and masks beyond 65504."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


def softmax64(x):
    x = np.asarray(x, np.float64)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def half(rng, *shape, scale=1.0):
    return (rng.normal(size=shape) * scale).astype(np.float16)


def logits(rng):
    x = half(rng, 4, 8)
    x[:, 0] = 14
    return (x,)


@faulty("x", logits, softmax64)
def softmax(x):
    weights = np.exp(x)  # guilty
    return weights / weights.sum(axis=-1, keepdims=True)


@faulty(
    "scores",
    lambda r: (half(r, 4, 32, scale=2), half(r, 5, 32, scale=2), half(r, 5, 3)),
    lambda q, k, v: softmax64(wide(q)[0] @ wide(k)[0].T) @ wide(v)[0],
)
def attention(queries, keys, values):
    scores = queries @ keys.T
    weights = np.exp(scores)  # guilty
    return (weights / weights.sum(axis=-1, keepdims=True)) @ values


@faulty("x", logits, lambda x: np.log(softmax64(x)))
def log_softmax(x):
    weights = np.exp(x)  # guilty
    return x - np.log(weights.sum(axis=-1, keepdims=True))


@faulty(
    "padding",
    lambda r: (half(r, 3, 4), np.full((3, 4), -6e4, np.float16), np.full((3, 4), -6e4, np.float16)),
    lambda scores, causal, padding: softmax64(wide(scores)[0] * 0),
)
def masked_softmax(scores, causal, padding):
    mask = causal + padding  # guilty
    scores = scores + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@faulty(
    "weights",
    lambda r: (np.zeros(100_000, np.float16),),
    lambda x: np.full(100_000, 1e-5),
)
def vocabulary_softmax(x):
    weights = np.exp(x - x.max())
    total = weights.sum()  # guilty
    return weights.astype(np.float32) / np.float32(total)


@faulty(
    "x",
    lambda r: (np.array([[4000, 3999, 3990], [10, 20, 30]], np.float16),),
    lambda x: softmax64(wide(x)[0] * 20),
)
def sharpened_softmax(x, temperature=np.float16(0.05)):
    scores = x / temperature  # guilty
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@clean(logits, softmax64)
def shifted_softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@clean(logits, softmax64)
def softmax_in_float32(x):
    weights = np.exp(x.astype(np.float32))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float16)


@clean(
    lambda r: (half(r, 4, 32), half(r, 5, 32), half(r, 5, 3)),
    lambda q, k, v: softmax64(wide(q)[0] @ wide(k)[0].T / 32) @ wide(v)[0],
)
def scaled_attention(queries, keys, values):
    scores = (queries / np.float16(32)) @ keys.T
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ values


@clean(lambda r: (half(r, 4, 8),), softmax64)
def small_softmax(x):
    weights = np.exp(x)
    return weights / weights.sum(axis=-1, keepdims=True)


@clean(
    lambda r: (half(r, 3, 4), np.array([0, 0, -6e4, -6e4], np.float16)),
    lambda scores, mask: softmax64(wide(scores)[0] + wide(mask)[0]),
)
def softmax_with_one_mask(scores, mask):
    scores = scores + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@clean(lambda r: (np.zeros(100_000, np.float16),), lambda x: np.full(100_000, 1e-5))
def vocabulary_softmax_in_float32(x):
    weights = np.exp((x - x.max()).astype(np.float32))
    return weights / weights.sum()
