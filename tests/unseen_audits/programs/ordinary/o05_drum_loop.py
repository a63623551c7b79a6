"""Synthesis of a one-bar drum loop, written as a 16-bit WAV file with a level report."""
import json
import wave

import numpy as np

RATE = 8000
TEMPO = 112.0
PATTERN = {
    "kick": "x...x...x...x.x.",
    "snare": "....x.......x...",
    "hat": "x.x.x.x.x.x.x.xx",
}
GAIN = {"kick": 0.9, "snare": 0.55, "hat": 0.25}
PAN = {"kick": 0.0, "snare": -0.2, "hat": 0.4}


def envelope(n, decay):
    t = np.arange(n, dtype=np.float32) / np.float32(RATE)
    return np.exp(-t / np.float32(decay))


def kick(n):
    t = np.arange(n) / RATE
    freq = 48.0 + 110.0 * np.exp(-t / 0.03)
    phase = 2.0 * np.pi * np.cumsum(freq) / RATE
    return (np.sin(phase) * envelope(n, 0.12)).astype(np.float32)


def snare(n, rng):
    noise = rng.standard_normal(n).astype(np.float32)
    tone = np.sin(2.0 * np.pi * 185.0 * np.arange(n) / RATE).astype(np.float32)
    return (np.float32(0.5) * noise + np.float32(0.5) * tone) * envelope(n, 0.07)


def hat(n, rng):
    noise = rng.standard_normal(n).astype(np.float32)
    bright = np.diff(noise, prepend=np.float32(0.0))
    return bright * envelope(n, 0.02)


def place(pattern, sound, step, length):
    """The sound at each hit of the pattern, later hits added to the tails of earlier ones."""
    track = np.zeros(length, dtype=np.float32)
    hits = [i for i, mark in enumerate(pattern) if mark == "x"]
    for hit in hits:
        begin = int(round(hit * step))
        end = min(begin + sound.size, length)
        track[begin:end] += sound[: end - begin]
    return track, len(hits)


def pan_gains(position):
    angle = (position + 1.0) * np.pi / 4.0
    return np.cos(angle), np.sin(angle)


def mix(tracks):
    length = next(iter(tracks.values())).size
    stereo = np.zeros((length, 2), dtype=np.float64)
    for name, track in tracks.items():
        left, right = pan_gains(PAN[name])
        stereo[:, 0] += GAIN[name] * left * track
        stereo[:, 1] += GAIN[name] * right * track
    return stereo


def limit(stereo, ceiling=0.89):
    soft = np.tanh(stereo)
    return soft * (ceiling / np.abs(soft).max())


def write_wave(path, stereo):
    pcm = np.rint(stereo * 32767.0).astype("<i2")
    with wave.open(path, "wb") as handle:
        handle.setnchannels(2)
        handle.setsampwidth(2)
        handle.setframerate(RATE)
        handle.writeframes(pcm.tobytes())
    return pcm


def decibel(x):
    return 20.0 * np.log10(np.maximum(np.abs(x), 1e-9))


def main():
    rng = np.random.default_rng(909)
    step = 60.0 / TEMPO / 4.0 * RATE
    length = int(round(16 * step))
    sounds = {"kick": kick(2400), "snare": snare(1600, rng), "hat": hat(700, rng)}
    tracks, hits = {}, {}
    for name, pattern in PATTERN.items():
        tracks[name], hits[name] = place(pattern, sounds[name], step, length)
    stereo = limit(mix(tracks))
    pcm = write_wave("loop.wav", stereo)
    peak = np.abs(pcm.astype(np.int32)).max(axis=0)
    rms = np.sqrt(np.mean((pcm / 32768.0) ** 2, axis=0))
    report = {
        "samples": int(pcm.shape[0]),
        "seconds": round(pcm.shape[0] / RATE, 4),
        "peak": peak.tolist(),
        "rms_db": [round(float(x), 3) for x in decibel(rms)],
        "hits": hits,
    }
    with open("loop.json", "w") as handle:
        json.dump(report, handle, indent=2)
    print("%(samples)d samples, %(seconds).3f s" % report)
    print("peaks left %d right %d" % tuple(report["peak"]))
    for name in tracks:
        print(f"{name:<6s} {hits[name]:2d} hits, energy {np.square(tracks[name], dtype=np.float64).sum():9.3f}")


if __name__ == "__main__":
    main()
