"""Slices of a CT series are scaled to Hounsfield units and stacked to a volume.

https://github.com/icometrix/dicom2nifti/issues/150
"""
import numpy as np

HEADERS = {"RescaleSlope": "1", "RescaleIntercept": "-1024", "PixelRepresentation": 0}


def number(text):
    value = float(text)
    return int(value) if value == int(value) else value


def get_pixel_data(raw, headers):
    signed = headers["PixelRepresentation"] == 1
    return raw.view(np.int16 if signed else np.uint16)


def do_scaling(data, rescale_slope, rescale_intercept):
    if rescale_slope == 1 and rescale_intercept == 0:
        return data
    if isinstance(rescale_slope, float) or isinstance(rescale_intercept, float):
        return data.astype(np.float32) * rescale_slope + rescale_intercept
    return data * rescale_slope + rescale_intercept


def apply_scaling(data, headers):
    slope = number(headers.get("RescaleSlope", 1))
    intercept = number(headers.get("RescaleIntercept", 0))
    return do_scaling(data, slope, intercept)


def smallest_dtype(volume):
    low, high = volume.min(), volume.max()
    for candidate in (np.int16, np.int32):
        info = np.iinfo(candidate)
        if info.min <= low and high <= info.max:
            return candidate
    return np.float32


def get_volume(slices, headers):
    block = [apply_scaling(get_pixel_data(s, headers), headers) for s in slices]
    volume = np.stack(block, axis=-1)
    return volume.astype(smallest_dtype(volume))


def main(slices):
    volume = get_volume(slices, HEADERS)
    bone = volume > 300
    return volume, np.array([bone.mean(), volume.mean()])


def inputs():
    rng = np.random.default_rng(0)
    return (rng.integers(0, 3000, (4, 8, 8)).astype(np.uint16),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
