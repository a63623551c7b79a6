"""FFT band-pass filter of a float32 audio buffer (NumPy 2 keeps single precision)."""
import numpy as np

SAMPLE_RATE = 8000
LOW, HIGH = 200.0, 1200.0
TAPER = 50.0


def response(n):
    """Raised-cosine edges around the pass band, one value per rfft bin."""
    f = np.fft.rfftfreq(n, d=1.0 / SAMPLE_RATE)
    rise = np.clip((f - (LOW - TAPER)) / TAPER, 0.0, 1.0)
    fall = np.clip(((HIGH + TAPER) - f) / TAPER, 0.0, 1.0)
    gain = 0.25 * (1.0 - np.cos(np.pi * rise)) * (1.0 - np.cos(np.pi * fall))
    return gain.astype(np.float32)


def main(audio):
    n = audio.shape[-1]
    spectrum = np.fft.rfft(audio)
    filtered = np.fft.irfft(spectrum * response(n), n=n)
    peak = np.max(np.abs(filtered))
    if peak > 1.0:
        filtered = filtered / peak
    return filtered


def inputs():
    t = np.arange(512, dtype=np.float64) / SAMPLE_RATE
    x = 0.4 * np.sin(2 * np.pi * 440 * t) + 0.4 * np.sin(2 * np.pi * 3000 * t) + 0.1
    return (x.astype(np.float32),)
