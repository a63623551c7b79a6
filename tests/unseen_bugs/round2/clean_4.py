"""Mixes two 16 bit recordings with gains in fixed point, saturates the sum, and reports its
peak and level."""
import numpy as np

CONFIG = {"gains": (0.75, 0.5), "fraction_bits": 14, "fade": 32}


def fixed_point(gain, bits):
    return np.int32(round(gain * (1 << bits)))


def scale(samples, gain, bits):
    wide = samples.astype(np.int32) * fixed_point(gain, bits)
    return (wide + (1 << (bits - 1))) >> bits


def fade(samples, length, bits):
    ramp = np.full(len(samples), 1 << bits, dtype=np.int32)
    edge = (np.arange(length, dtype=np.int32) << bits) // length
    ramp[:length] = edge
    ramp[-length:] = edge[::-1]
    return (samples * ramp) >> bits


def saturate(wide):
    info = np.iinfo(np.int16)
    clipped = np.count_nonzero((wide < info.min) | (wide > info.max))
    return np.clip(wide, info.min, info.max).astype(np.int16), clipped


def level(samples):
    x = samples.astype(np.float64) / 32768
    return 10 * np.log10(np.mean(x * x))


def main(left, right):
    bits = CONFIG["fraction_bits"]
    total = sum(scale(s, g, bits) for s, g in zip((left, right), CONFIG["gains"]))
    mixed, clipped = saturate(fade(total, CONFIG["fade"], bits))
    peak = np.abs(mixed.astype(np.int32)).max()
    return mixed, np.array([peak, clipped]), np.array([level(mixed)])


def inputs():
    t = np.arange(400)
    left = np.rint(30000 * np.sin(t * 0.11)).astype(np.int16)
    return left, np.rint(28000 * np.sin(t * 0.07 + 1)).astype(np.int16)
