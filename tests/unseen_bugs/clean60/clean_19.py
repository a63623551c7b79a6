"""Mix two 16-bit audio tracks with Q15 gains: 32-bit products, rounding, saturation."""
import numpy as np

Q = 15
HALF = 1 << (Q - 1)
INT16_MIN, INT16_MAX = -32768, 32767


def q15_mul(samples, gain_q15):
    """int16 x int16 fits in 32 bits; round to nearest before the shift."""
    prod = samples.astype(np.int32) * gain_q15.astype(np.int32)
    return (prod + HALF) >> Q


def saturate(x):
    return np.clip(x, INT16_MIN, INT16_MAX).astype(np.int16)


def main(left, right, gains):
    a = q15_mul(left, gains[0])
    b = q15_mul(right, gains[1])
    mixed = a + b                     # int32: two 16-bit values never overflow it
    out = saturate(mixed)
    clipped = np.count_nonzero((mixed > INT16_MAX) | (mixed < INT16_MIN))
    # level: squares summed in int64
    energy = np.sum(out.astype(np.int64) ** 2)
    rms = np.sqrt(energy / out.size)
    return out, clipped, rms


def inputs():
    t = np.arange(200)
    left = np.rint(30000 * np.sin(2 * np.pi * t / 40)).astype(np.int16)
    right = np.rint(28000 * np.sin(2 * np.pi * t / 33)).astype(np.int16)
    return left, right, np.array([24576, 19661], dtype=np.int16)
