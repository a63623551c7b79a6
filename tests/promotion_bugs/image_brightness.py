"""Brightness in percent wraps an image of uint8.

https://github.com/LCAV/LenslessPiCam/pull/173
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class DisplayConfig:
    brightness: int = 80
    pad: int = 4
    vertical_shift: int = 0


def padded(image, pad):
    canvas = np.zeros((image.shape[0] + 2 * pad, image.shape[1] + 2 * pad, 3), np.uint8)
    canvas[pad:-pad, pad:-pad] = image
    return canvas


def adjusted(image, config):
    if config.brightness:
        image = (image * config.brightness / 100).astype(np.uint8)  # guilty
    return image


def program(image):
    config = DisplayConfig()
    image = padded(image, config.pad)
    if config.vertical_shift:
        image = np.roll(image, config.vertical_shift, axis=0)
    return adjusted(image, config)


def inputs(folder):
    return (np.full((6, 6, 3), 200, np.uint8),)


def shows_fault(result):
    return result.max() != 160
