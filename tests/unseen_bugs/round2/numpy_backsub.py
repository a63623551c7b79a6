"""Subtracts the scaled autofluorescence channel from each marker channel of a 16 bit stack.

https://github.com/SchapiroLabor/Background_subtraction/pull/10
"""
import copy

import numpy as np

MARKERS = [
    {"marker_name": "DAPI", "background": None, "exposure": 25.0, "remove": False},
    {"marker_name": "AF555", "background": None, "exposure": 100.0, "remove": True},
    {"marker_name": "CD8", "background": "AF555", "exposure": 300.0, "remove": False},
    {"marker_name": "CD20", "background": "AF555", "exposure": 50.0, "remove": False},
]


def process_markers(markers):
    table = []
    for ind, row in enumerate(markers):
        row = dict(row, ind=ind)
        row["keep"] = not row["remove"]
        table.append(row)
    return table


def subtract_channel(image, markers, channel, background_marker, output):
    scalar = markers[channel]["exposure"] / background_marker["exposure"]
    # the background, scaled by the exposure times and rounded to the nearest integer
    back = copy.copy(image[background_marker["ind"]])
    back = np.rint(back * scalar)
    back = back.astype(np.uint16)
    # pixels below the scaled background are set to 0
    output[channel] = np.where(image[channel] < back, 0, image[channel] - back)
    return output[channel]


def subtract(img, markers, output):
    for channel in range(len(markers)):
        name = markers[channel]["background"]
        if name is None:
            output[channel] = copy.copy(img[channel])
        else:
            background_marker = next(m for m in markers if m["marker_name"] == name)
            output[channel] = subtract_channel(img, markers, channel, background_marker, output)
    return output


def downscale(channel, factor):
    h, w = (s // factor * factor for s in channel.shape)
    blocks = channel[:h, :w].reshape(h // factor, factor, w // factor, factor)
    return np.around(blocks.mean(axis=(1, 3))).astype(channel.dtype)


def main(img):
    markers = process_markers(MARKERS)
    output = subtract(img, markers, np.empty_like(img))
    kept = output[[m["ind"] for m in markers if m["keep"]]]
    pyramid = np.stack([downscale(c, 2) for c in kept])
    return kept, pyramid


def inputs():
    rng = np.random.default_rng(1)
    img = rng.integers(200, 9000, size=(4, 8, 8)).astype(np.uint16)
    img[1, :4] = rng.integers(22000, 30000, size=(4, 8))
    img[2, :4] = rng.integers(30000, 60000, size=(4, 8))
    return (img,)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
