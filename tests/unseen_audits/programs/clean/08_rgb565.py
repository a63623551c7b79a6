# Pack 8-bit RGB pixels into the 16-bit format of a small TFT display
import numpy as np


def make_inputs():
    rng = np.random.default_rng(565)
    return (rng.integers(0, 256, size=(24, 20, 3), dtype=np.uint8),)


def run(rgb):
    wide = rgb.astype(np.uint16)
    r, g, b = np.moveaxis(wide, -1, 0)
    packed = ((r >> 3) << 11) | ((g >> 2) << 5) | (b >> 3)

    # bytes as the controller wants them: high byte first
    hi = (packed >> 8).astype(np.uint8)
    lo = (packed & 0xFF).astype(np.uint8)
    stream = np.stack([hi, lo], axis=-1)
    stream.tofile("screen.raw")

    back = (packed >> 11) * 255 // 31
    worst = np.abs(back.astype(int) - rgb[..., 0]).max()
    return packed, worst


def exact(rgb):
    pk, st, worst = [], [], 0
    for r, g, b in rgb.reshape(-1, 3).tolist():
        v = (r // 8) * 2048 + (g // 4) * 32 + b // 8
        pk.append(v)
        st += list(v.to_bytes(2, "big"))
        worst = max(worst, abs((r // 8) * 255 // 31 - r))
    return pk, worst, st


ANSWER = {
    "outputs": {
        "packed (returned, first)": {"size": 480, "differ": 0},
        "worst (returned, second)": {"size": 1, "differ": 0},
        "screen.raw": {"size": 960, "differ": 0},
    },
    "note": "pixels are widened to uint16 before the shifts; every value fits (31 * 255 too); dropping low bits is the format",
}
