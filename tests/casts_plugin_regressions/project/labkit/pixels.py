"""Images, normalized for a network in float16 or float32."""

import numpy as np

MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)


def normalized(image):
    image = image / 255
    mean, std = np.asarray(MEAN, image.dtype), np.asarray(STD, image.dtype)
    return (image - mean) / std


def patches(image, size):
    rows, columns, channels = image.shape
    grid = image.reshape(rows // size, size, columns // size, size, channels)
    return grid.transpose(0, 2, 1, 3, 4).reshape(-1, size * size * channels)


def tokens(image, size):
    return patches(normalized(image), size)
