"""Mix a voice track over background music and write a 16 bit wav."""
import argparse
import os
import tempfile
import wave

import numpy as np

RATE = 8000


def tone(freq, seconds, level):
    t = np.arange(int(seconds * RATE)) / RATE
    return (level * 32767 * np.sin(2 * np.pi * freq * t)).astype(np.int16)


def fade_in(track, seconds=0.05):
    n = int(seconds * RATE)
    ramp = np.ones(len(track))
    ramp[:n] = np.linspace(0, 1, n)
    return np.round(track * ramp).astype(np.int16)


def mix(voice, music):
    n = min(len(voice), len(music))
    both = voice[:n] + music[:n]
    return np.clip(both, -32768, 32767).astype(np.int16)


def save_wav(path, samples):
    with wave.open(path, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(RATE)
        f.writeframes(samples.astype("<i2").tobytes())


def load_wav(path):
    with wave.open(path, "rb") as f:
        return np.frombuffer(f.readframes(f.getnframes()), dtype="<i2")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--voice", type=float, default=0.75)
    p.add_argument("--music", type=float, default=0.45)
    a = p.parse_args()
    voice = fade_in(tone(220, 0.5, a.voice))
    music = fade_in(tone(330, 0.6, a.music))
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "mix.wav")
        save_wav(path, mix(voice, music))
        out = load_wav(path)
    jumps = np.abs(np.diff(out.astype(np.int32)))
    print(f"{len(out)} samples, lowest {out.min()}, highest {out.max()}, largest step {jumps.max()}")


if __name__ == "__main__":
    main()
