"""Reads the channels of a recording, finds the rising edges of the mono mix and cuts one window
per frame for an oscilloscope view.

https://github.com/corrscope/corrscope/issues/63
"""
import numpy as np

CONFIG = {"amplification": 1.0, "fps": 50, "window": 64, "search": 40, "edge_strength": 4.0}
FLOAT = np.single


class Wave:
    def __init__(self, rate, data, amplification=1.0):
        self.smp_s, self.data = rate, data
        self.amplification = amplification
        dtype = self.data.dtype
        assert self.data.ndim in (1, 2)
        self.is_mono = self.data.ndim == 1
        self.nsamp = len(self.data)
        if np.issubdtype(dtype, np.unsignedinteger):
            self.center = self.max_val = (np.iinfo(dtype).max + 1) // 2
        elif np.issubdtype(dtype, np.signedinteger):
            self.center, self.max_val = 0, np.iinfo(dtype).max + 1
        else:
            self.center, self.max_val = 0, 1

    def flatten(self):
        if not self.is_mono:
            self.data = np.mean(self.data, axis=1, dtype=self.data.dtype)
            self.is_mono = True
        return self

    def __getitem__(self, index):
        data = self.data[index].astype(FLOAT)
        data -= self.center
        data *= self.amplification / self.max_val
        return data

    def get_around(self, sample, nsamp):
        end = sample + nsamp // 2
        begin = end - nsamp
        out = np.zeros(nsamp, dtype=FLOAT)
        low, high = max(begin, 0), min(end, self.nsamp)
        out[low - begin:high - begin] = self[low:high]
        return out


class CorrelationTrigger:
    def __init__(self, wave, config):
        self.wave, self.search = wave, config["search"]
        half = config["window"] // 2
        step = np.ones(2 * half, dtype=FLOAT)
        step[:half] = -1
        self.kernel = step * FLOAT(config["edge_strength"] / (2 * half))

    def get_trigger(self, sample):
        n = len(self.kernel)
        data = self.wave.get_around(sample, n + self.search)
        score = np.correlate(data, self.kernel, mode="valid")
        return sample + int(score.argmax()) - self.search // 2


def render_frames(wave, trigger, config):
    step = wave.smp_s // config["fps"]
    positions = [trigger.get_trigger(s) for s in range(step, wave.nsamp - step, step)]
    frames = np.stack([wave.get_around(p, config["window"]) for p in positions])
    return frames, np.array(positions)


def main(recording):
    wave = Wave(8000, recording, CONFIG["amplification"]).flatten()
    trigger = CorrelationTrigger(wave, CONFIG)
    frames, positions = render_frames(wave, trigger, CONFIG)
    return wave.data, frames, positions


def inputs():
    t = np.arange(1600)
    left = np.sin(2 * np.pi * t / 89.0)
    right = np.sin(2 * np.pi * t / 89.0 + 0.3)
    volume = np.linspace(0.2, 0.99, len(t))
    stereo = np.stack([left, right], axis=1) * volume[:, None] * 32767
    return (np.rint(stereo).astype(np.int16),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
