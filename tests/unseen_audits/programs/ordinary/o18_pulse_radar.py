"""Pulse radar: chirp, matched filter, Doppler processing, constant false alarm rate detection."""
from typing import NamedTuple

import numpy as np

LIGHT = 299_792_458.0


class Radar(NamedTuple):
    carrier: float = 9.4e9
    bandwidth: float = 10.0e6
    rate: float = 20.0e6
    pulse: float = 4.0e-6
    repetition: float = 8000.0
    pulses: int = 32
    gates: int = 320


class Detection(NamedTuple):
    range_m: np.ndarray
    speed: np.ndarray
    snr_db: np.ndarray


def chirp(radar):
    n = int(round(radar.pulse * radar.rate))
    t = np.arange(n) / radar.rate - radar.pulse / 2
    return np.exp(1j * np.pi * radar.bandwidth / radar.pulse * t**2).astype(np.complex64)


def make_inputs():
    rng = np.random.default_rng(1818)
    radar = Radar()
    pulse = chirp(radar)
    shape = (radar.pulses, radar.gates)
    echo = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)
    targets = [(560.0, 18.0, 0.7), (1200.0, -31.0, 0.8), (1215.0, 9.0, 0.6), (1725.0, 0.0, 1.1)]
    slow = np.arange(radar.pulses) / radar.repetition
    for distance, speed, amplitude in targets:
        gate = int(round(2 * distance / LIGHT * radar.rate))
        doppler = 2 * speed * radar.carrier / LIGHT
        phase = np.exp(2j * np.pi * doppler * slow)
        echo[:, gate:gate + pulse.size] += amplitude * phase[:, None] * pulse
    return radar, echo.astype(np.complex64)


def next_power(n):
    return 1 << (n - 1).bit_length()


def compress(echo, pulse):
    """Matched filter along range by fast convolution."""
    n = next_power(echo.shape[1] + pulse.size - 1)
    spectrum = np.fft.fft(echo, n, axis=1)
    reference = np.conj(np.fft.fft(pulse * np.hamming(pulse.size), n))
    filtered = np.fft.ifft(spectrum * reference, axis=1)
    return filtered[:, :echo.shape[1]] / np.sqrt(pulse.size)


def doppler_map(compressed, radar):
    window = np.hanning(radar.pulses + 2)[1:-1]
    window = window / np.sqrt(np.mean(window**2))
    spectrum = np.fft.fftshift(np.fft.fft(compressed * window[:, None], axis=0), axes=0)
    power = (spectrum.real**2 + spectrum.imag**2) / radar.pulses
    freq = np.fft.fftshift(np.fft.fftfreq(radar.pulses, 1.0 / radar.repetition))
    return power, freq * LIGHT / (2.0 * radar.carrier)


def cell_average(power, guard=3, train=8):
    """Mean of the training cells on both sides of each range gate."""
    width = guard + train
    padded = np.pad(power, ((0, 0), (width, width)), mode="wrap")
    total = np.cumsum(padded, axis=1)
    total = np.concatenate([np.zeros((power.shape[0], 1)), total], axis=1)
    n = power.shape[1]
    outer = total[:, 2 * width + 1:2 * width + 1 + n] - total[:, :n]
    low, high = width - guard, width + guard + 1
    inner = total[:, high:high + n] - total[:, low:low + n]
    return (outer - inner) / (2 * train)


def local_peaks(power, mask):
    padded = np.pad(power, 1, constant_values=-np.inf)
    rows, cols = power.shape
    neighbours = [padded[1 + dr:1 + dr + rows, 1 + dc:1 + dc + cols]
                  for dr in (-1, 0, 1) for dc in (-1, 0, 1) if (dr, dc) != (0, 0)]
    return mask & (power >= np.max(neighbours, axis=0))


def run(radar, echo):
    pulse = chirp(radar)
    power, speeds = doppler_map(compress(echo, pulse), radar)
    noise = cell_average(power)
    cells = 16
    false_alarm = 1e-6
    factor = cells * (false_alarm ** (-1.0 / cells) - 1.0)
    hits = local_peaks(power, power > factor * noise)
    row, gate = np.nonzero(hits)
    order = np.argsort(-power[row, gate], kind="stable")[:8]
    row, gate = row[order], gate[order]
    ratio = 10.0 * np.log10(power[row, gate] / noise[row, gate])
    found = Detection(gate * LIGHT / (2.0 * radar.rate), speeds[row], ratio)
    for r, v, s in zip(*found):
        print("%8.1f m  %+7.2f m/s  %5.1f dB" % (r, v, s))
    step = LIGHT / (2.0 * radar.bandwidth)
    unambiguous = LIGHT * radar.repetition / (4.0 * radar.carrier)
    print(f"range resolution {step:.2f} m, unambiguous speed {unambiguous:.2f} m/s")
    power.astype(np.float32).tofile("map.f4")
    return {
        "detections": found,
        "noise_level": float(np.median(noise)),
        "map_peak": float(power.max()),
        "hits_per_gate": hits.sum(axis=0),
        "profile": 10.0 * np.log10(power.mean(axis=0)),
    }
