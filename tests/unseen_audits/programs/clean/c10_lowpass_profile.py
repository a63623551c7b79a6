"""Low-pass filtering of a road profile in the frequency domain and survey scores."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(310)
    x = np.arange(200) * 0.5
    profile = 0.02 * np.sin(x / 6.0) + rng.normal(0.0, 0.004, x.size)
    half_points = rng.integers(0, 21, size=(12, 5)) / 2.0
    return profile, half_points


def lowpass(profile, keep):
    spectrum = np.fft.fft(profile)
    index = np.abs(np.fft.fftfreq(profile.size) * profile.size)
    spectrum[index > keep] = 0.0
    smooth = np.fft.ifft(spectrum)
    if np.abs(smooth.imag).max() > 1e-12:
        raise ValueError("spectrum is not symmetric")
    return smooth.real


def run(profile, half_points):
    smooth = lowpass(profile, 12)
    rough = np.sqrt(np.mean((profile - smooth) ** 2))
    stored = half_points.astype(np.float16)   # halves are exact here
    section = stored.sum(axis=1, dtype=np.float64)
    good = np.sum(stored >= 5, axis=1)
    np.save("scores.npy", stored)
    return {
        "smooth": smooth,
        "rough": rough,
        "stored": stored,
        "section": section,
        "good": good,
        "share_good": (stored >= 5).mean(),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "smooth": {"differ": 0},
        "rough": {"differ": 0},
        "stored": {"differ": 0},
        "section": {"differ": 0},
        "good": {"differ": 0},
        "share_good": {"differ": 0},
    },
    "why": "the imaginary part is checked to be rounding only, halves are exact in float16",
}
