"""Short-time spectrum of a synthetic bird call recorded as int16 samples.

The signal is windowed in float32, the spectrogram gives the track of the dominant frequency, the calls are
segmented by their energy, and a spectral gate removes the background.
"""
# outputs: 23
# (3 returned, 18 numbers printed, 2 arrays written)
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

RATE = 8000
N_FFT = 128
HOP = 64


def bird_call(rng):
    n = 2500
    t = np.arange(n) / RATE
    audio = 0.01 * rng.standard_normal(n)
    for start, f0, f1 in ((0.03, 1800, 2600), (0.12, 2700, 1500), (0.215, 2000, 2100)):
        inside = (t >= start) & (t < start + 0.065)
        u = (t[inside] - start) / 0.065
        phase = 2 * np.pi * 0.065 * (f0 * u + 0.5 * (f1 - f0) * u ** 2)
        audio[inside] += 0.5 * np.sin(np.pi * u) ** 2 * np.sin(phase)
    return np.clip(audio * 32767, -32768, 32767).astype(np.int16)


def stft(x):
    window = np.hanning(N_FFT + 1)[:-1].astype(np.float32)
    frames = sliding_window_view(x, N_FFT)[::HOP]
    return np.fft.rfft(frames * window, axis=1), window


def istft(spec, window, length):
    out = np.zeros(length, dtype=np.float32)
    norm = np.zeros(length, dtype=np.float32)
    for k, frame in enumerate(np.fft.irfft(spec, n=N_FFT, axis=1)):
        span = slice(k * HOP, k * HOP + N_FFT)
        out[span] += frame.astype(np.float32) * window
        norm[span] += window ** 2
    good = norm > 1e-3
    out[good] /= norm[good]
    return out


def segments(active):
    """Start and stop (exclusive) of the runs of True."""
    padded = np.concatenate(([False], active, [False])).astype(np.int8)
    edge = np.diff(padded)
    return np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)


def dominant(power, freqs):
    k = power.argmax(axis=1)
    k = np.clip(k, 1, power.shape[1] - 2)
    rows = np.arange(len(k))
    a, b, c = (np.log(power[rows, k + j] + 1e-20) for j in (-1, 0, 1))
    shift = 0.5 * (a - c) / (a - 2 * b + c)
    return freqs[k] + shift * (freqs[1] - freqs[0])


def main():
    rng = np.random.default_rng(440)
    pcm = bird_call(rng)
    x = pcm.astype(np.float32) / np.float32(32768)
    spec, window = stft(x)
    power = spec.real ** 2 + spec.imag ** 2
    freqs = np.fft.rfftfreq(N_FFT, 1 / RATE)
    times = (np.arange(len(spec)) * HOP + N_FFT / 2) / RATE

    energy = power.sum(axis=1)
    floor = np.median(energy)
    level_db = 10 * np.log10(energy / energy.max())
    active = energy > 8 * floor
    start, stop = segments(active)
    track = dominant(power, freqs)

    print("frames", len(spec), "calls", len(start))
    for a, b in zip(start, stop):
        pitch = track[a:b]
        slope = np.polyfit(times[a:b], pitch, 1)[0]
        print(f"  from {times[a]:.3f} s to {times[b - 1]:.3f} s  "
              f"mean {pitch.mean():7.1f} Hz  slope {slope:9.1f}  peak {level_db[a:b].max():6.2f} dB")

    noise = np.percentile(power, 60, axis=0)
    mask = power > 12 * noise
    cleaned = istft(spec * mask, window, len(x))
    removed = 1 - np.sum(cleaned.astype(float) ** 2) / np.sum(x.astype(float) ** 2)
    print("energy removed by the gate: %.5f" % removed)

    out = np.round(cleaned * 32767).astype(np.int16)
    out.tofile("cleaned.pcm")
    np.save("spectrogram.npy", (10 * np.log10(power + 1e-12)).astype(np.float32))
    zero_crossings = np.count_nonzero(np.diff(np.signbit(x)))
    return zero_crossings, np.abs(pcm.astype(np.int32)).max(), track[active]


if __name__ == "__main__":
    main()
