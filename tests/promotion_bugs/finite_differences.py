"""The gradient of a fit in float32 is zero: the step is float64's.

https://github.com/pyspeckit/pyspeckit/pull/176
"""

import numpy as np


def gaussian(axis, parameters):
    amplitude, centre, width = parameters
    return amplitude * np.exp(-((axis - centre) ** 2) / (2 * width**2))


class Fitter:
    step = float(np.sqrt(np.finfo(float).eps))

    def __init__(self, axis, data):
        self.axis, self.data = axis, data

    def loss(self, parameters):
        return np.sum((gaussian(self.axis, parameters) - self.data) ** 2)

    def gradient(self, parameters):
        base = self.loss(parameters)
        gradient, step = np.empty_like(parameters), self.step
        for i in range(len(parameters)):
            shifted = parameters.copy()
            shifted[i] += step  # guilty
            gradient[i] = (self.loss(shifted) - base) / np.float32(step)
        return gradient


def program(axis, data):
    return Fitter(axis, data).gradient(np.array([2.0, 1.5, 1.2], np.float32))


def inputs(folder):
    axis = np.linspace(-5, 5, 50, dtype=np.float32)
    return axis, gaussian(axis, np.array([1.0, 0.5, 0.8], np.float32))


def shows_fault(result):
    return not result.any()
