"""The log loss of float32 probabilities is NaN: 1 - 1e-15 is 1 in float32.

https://github.com/scikit-learn/scikit-learn/pull/24356
"""

import numpy as np


def softmax(scores):
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def clipped(probabilities, eps=1e-15):
    return np.clip(probabilities, eps, 1 - eps)  # guilty


def log_loss(truth, probabilities):
    p = clipped(probabilities)
    terms = truth * np.log(p) + (1 - truth) * np.log(1 - p)
    return -terms.sum(axis=-1).mean()


def program(truth, scores):
    return log_loss(truth, softmax(scores))


def inputs(folder):
    scores = np.array([[40, 0, 0], [1, 2, 3], [0, 30, 2]], np.float32)
    return np.eye(3, dtype=np.float32)[[0, 2, 1]], scores


def shows_fault(result):
    return not np.isfinite(result)
