"""Images of uint8 and float32."""

import numpy as np


def brightened(image, percent):
    scaled = image.astype(np.float32) * percent / 100
    return np.clip(scaled, 0, 255).astype(np.uint8)


def without_dark_level(image, counts):
    level = counts.mean(dtype=image.dtype)
    return image - level


def padded(image, width):
    rows, columns = image.shape
    canvas = np.zeros((rows + 2 * width, columns + 2 * width), image.dtype)
    canvas[width:-width, width:-width] = image
    return canvas


def sharpened(image, amount=0.5):
    frame = padded(image, 1)
    blurred = (frame[:-2, 1:-1] + frame[2:, 1:-1] + frame[1:-1, :-2] + frame[1:-1, 2:]) / 4
    return image + amount * (image - blurred)
