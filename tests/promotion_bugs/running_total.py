"""A total that starts as a Python float is float32 under NumPy 2.

https://github.com/numpy/numpy/issues/25098
"""

import numpy as np


class Meter:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def update(self, value, weight=1):
        self.total += value * weight  # guilty
        self.count += weight

    @property
    def average(self):
        return self.total / self.count


def batch_loss(predictions, targets):
    return np.square(predictions - targets).mean() + np.float32(1)


def program(predictions, targets):
    meter = Meter()
    for i in range(len(predictions)):
        meter.update(batch_loss(predictions[i], targets[i]), weight=50_000)
    return meter.average


def inputs(folder):
    predictions = np.full((3000, 4), 0.07, np.float32)
    return predictions, np.zeros_like(predictions)


def shows_fault(result):
    predictions, targets = inputs(None)
    losses = np.square(predictions - targets).mean(axis=1).astype(np.float64) + 1
    return abs(result - losses.mean()) > 1e-6
