"""Sixteen-bit stereo audio is made float32, mixed, filtered and written back with saturation."""
import numpy as np

FULL_SCALE = np.float32(32768)


def to_float(samples):
    return samples.astype(np.float32) / FULL_SCALE


def to_int16(samples):
    return np.clip(np.rint(samples * FULL_SCALE), -32768, 32767).astype(np.int16)


def smooth(x, width):
    kernel = np.ones(width, np.float32) / np.float32(width)
    return np.convolve(x, kernel, mode="same")


def main(samples):
    mono = to_float(samples).mean(axis=1)
    filtered = smooth(mono, 5)
    rms = np.sqrt(np.mean(np.square(filtered), dtype=np.float64))
    return to_int16(filtered), filtered, np.array([20 * np.log10(rms)])


def inputs():
    rng = np.random.default_rng(0)
    return (rng.integers(-32768, 32768, (500, 2)).astype(np.int16),)
