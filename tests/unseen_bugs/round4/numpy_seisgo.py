"""Cuts a continuous seismic trace into windows, removes the noisy ones and stacks the spectra of
the windows in each span of time.

https://github.com/xtyangpsp/SeisGo/issues/43
"""
import numpy as np

CONFIG = {"samp_freq": 20.0, "cc_len": 30.0, "step": 5.0, "max_over_std": 12.0, "substack_len": 60.0}


class Trace:
    def __init__(self, data, starttime, sampling_rate):
        self.data, self.starttime, self.sampling_rate = data, starttime, sampling_rate

    @property
    def npts(self):
        return len(self.data)


def detrend(data):
    t = np.arange(data.shape[-1]) - (data.shape[-1] - 1) / 2
    slope = (data * t).sum(axis=-1, keepdims=True) / (t ** 2).sum()
    return data - data.mean(axis=-1, keepdims=True) - slope * t


def cut_trace_make_stat(trace, win_len, step):
    npts_win = int(win_len * trace.sampling_rate)
    npts_step = int(step * trace.sampling_rate)
    nseg = 1 + (trace.npts - npts_win) // npts_step
    trace_stdS = np.zeros(nseg, dtype=np.float32)
    dataS_t = np.zeros(nseg, dtype=np.float32)
    dataS = np.zeros((nseg, npts_win), dtype=np.float32)
    all_std = np.std(trace.data)
    for iseg in range(nseg):
        indx1 = iseg * npts_step
        window = trace.data[indx1:indx1 + npts_win]
        dataS[iseg] = window
        trace_stdS[iseg] = np.max(np.abs(window)) / all_std
        dataS_t[iseg] = trace.starttime + step * iseg
    return trace_stdS, dataS_t, detrend(dataS)


def substack(times, spectra, length):
    edges = np.arange(times[0], times[-1] + length, length)
    labels = np.searchsorted(edges, times, side="right") - 1
    stacks, starts, counts = [], [], []
    for label in np.unique(labels):
        member = labels == label
        stacks.append(spectra[member].mean(axis=0))
        starts.append(times[member][0])
        counts.append(np.count_nonzero(member))
    return np.array(stacks), np.array(starts), np.array(counts)


def main(data, starttime):
    trace = Trace(data, starttime, CONFIG["samp_freq"])
    stds, times, windows = cut_trace_make_stat(trace, CONFIG["cc_len"], CONFIG["step"])
    keep = stds < CONFIG["max_over_std"]
    spectra = np.abs(np.fft.rfft(windows[keep] * np.hanning(windows.shape[1]), axis=1))
    stacks, starts, counts = substack(times[keep], spectra, CONFIG["substack_len"])
    return stacks, starts, counts, times[keep]


def inputs():
    rng = np.random.default_rng(4)
    n = int(300 * CONFIG["samp_freq"])
    t = np.arange(n) / CONFIG["samp_freq"]
    data = (np.sin(2 * np.pi * 1.5 * t) + 0.4 * rng.normal(size=n)).astype(np.float32)
    data[3000] = 60.0
    return data, 1748229500.0


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
