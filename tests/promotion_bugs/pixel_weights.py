"""Differences between pixels of uint8 wrap, and the weights are asymmetric.

https://github.com/dwave-examples/image-segmentation/issues/10
"""

import numpy as np


def weight(image, first, second, scale=100.0):
    difference = image[first] - image[second]  # guilty
    return 1.0 - np.sqrt(np.sum(difference.astype(np.float64) ** 2)) / scale


def neighbours(rows, columns):
    for row in range(rows):
        for column in range(columns - 1):
            yield (row, column), (row, column + 1)


def program(image):
    rows, columns = image.shape[:2]
    pairs = list(neighbours(rows, columns))
    forward = np.array([weight(image, a, b) for a, b in pairs])
    backward = np.array([weight(image, b, a) for a, b in pairs])
    return np.stack([forward, backward])


def inputs(folder):
    image = np.zeros((2, 3, 3), np.uint8)
    image[0, 1] = (30, 0, 40)
    image[1, 2] = (5, 5, 5)
    return (image,)


def shows_fault(result):
    return bool((result[0] != result[1]).any())
