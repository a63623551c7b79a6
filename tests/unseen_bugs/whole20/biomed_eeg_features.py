"""Window features of a multi-channel EEG recording.

Application: sleep staging / seizure detection / BCI front end.  Raw int16 counts become microvolts, are cut into
overlapping windows, and every window gives the classical time-domain features: Hjorth activity, mobility and
complexity, line length, zero crossings, skewness, kurtosis and mean Teager-Kaiser energy.
Public code with such a loop: mne-features (https://github.com/mne-tools/mne-features), antropy
(https://github.com/raphaelvallat/antropy), NeuroKit2.
"""
import numpy as np

TOLERANCE = 1e-2  # a zero crossing at rounding distance from the mean may count or not; all else agrees to 2e-4


def hjorth(w):
    dw = np.diff(w, axis=-1)
    ddw = np.diff(dw, axis=-1)
    activity = w.var(axis=-1)
    var_d = dw.var(axis=-1)
    mobility = np.sqrt(var_d / activity)
    complexity = np.sqrt(ddw.var(axis=-1) / var_d) / mobility
    return activity, mobility, complexity, dw


def zero_crossings(w):
    neg = np.signbit(w)
    return np.sum(neg[..., 1:] != neg[..., :-1], axis=-1)


def main(raw, gain, win=512, hop=128):
    x = raw.astype(np.float32) * gain[:, None]
    x -= x.mean(axis=1, keepdims=True)
    windows = np.lib.stride_tricks.sliding_window_view(x, win, axis=1)[:, ::hop]
    w = windows - windows.mean(axis=-1, keepdims=True)
    activity, mobility, complexity, dw = hjorth(w)
    line_length = np.abs(dw).mean(axis=-1)
    crossings = zero_crossings(w).astype(np.float32)
    skew = (w ** 3).mean(axis=-1) / activity ** 1.5
    kurt = (w ** 4).mean(axis=-1) / activity ** 2 - 3
    teager = (w[..., 1:-1] ** 2 - w[..., :-2] * w[..., 2:]).mean(axis=-1)
    shape = np.stack([mobility, complexity, skew, kurt], axis=-1)
    energy = np.log(np.stack([activity, line_length, teager, 1 + crossings], axis=-1))
    return shape, energy


def inputs(rng):
    channels, n, fs = 8, 7680, 256.0
    t = np.arange(n) / fs
    alpha = np.sin(2 * np.pi * (10 * t + 0.3 * np.sin(0.5 * t)))
    drift = np.cumsum(rng.standard_normal((channels, n)), axis=1)
    raw = 120 * alpha + 4 * drift + 40 * rng.standard_normal((channels, n))
    return raw.astype(np.int16), (0.2 + 0.1 * rng.random(channels)).astype(np.float32)


try:
    import jax
    import jax.numpy as jnp
except ImportError:
    pass


def jax_main(raw, gain, win=512, hop=128):
    x = raw.astype(jnp.float32) * gain[:, None]
    x = x - x.mean(axis=1, keepdims=True)
    starts = jnp.arange(0, x.shape[1] - win + 1, hop)
    w = x[:, starts[:, None] + jnp.arange(win)]
    w = w - w.mean(axis=-1, keepdims=True)
    dw = jnp.diff(w, axis=-1)
    ddw = jnp.diff(dw, axis=-1)
    activity, var_d = w.var(axis=-1), dw.var(axis=-1)
    mobility = jnp.sqrt(var_d / activity)
    complexity = jnp.sqrt(ddw.var(axis=-1) / var_d) / mobility
    neg = jnp.signbit(w)
    crossings = jnp.sum(neg[..., 1:] != neg[..., :-1], axis=-1).astype(jnp.float32)
    skew = (w ** 3).mean(axis=-1) / activity ** 1.5
    kurt = (w ** 4).mean(axis=-1) / activity ** 2 - 3
    teager = (w[..., 1:-1] ** 2 - w[..., :-2] * w[..., 2:]).mean(axis=-1)
    shape = jnp.stack([mobility, complexity, skew, kurt], axis=-1)
    return shape, jnp.log(jnp.stack([activity, jnp.abs(dw).mean(axis=-1), teager, 1 + crossings], axis=-1))


try:
    import torch
except ImportError:
    pass


def torch_main(raw, gain, win=512, hop=128):
    x = raw.to(torch.float32) * gain[:, None]
    x = x - x.mean(dim=1, keepdim=True)
    w = x.unfold(1, win, hop)
    w = w - w.mean(dim=-1, keepdim=True)
    dw = torch.diff(w, dim=-1)
    ddw = torch.diff(dw, dim=-1)
    activity = w.var(dim=-1, correction=0)
    var_d = dw.var(dim=-1, correction=0)
    mobility = torch.sqrt(var_d / activity)
    complexity = torch.sqrt(ddw.var(dim=-1, correction=0) / var_d) / mobility
    neg = torch.signbit(w)
    crossings = (neg[..., 1:] != neg[..., :-1]).sum(dim=-1).to(torch.float32)
    skew = (w ** 3).mean(dim=-1) / activity ** 1.5
    kurt = (w ** 4).mean(dim=-1) / activity ** 2 - 3
    teager = (w[..., 1:-1] ** 2 - w[..., :-2] * w[..., 2:]).mean(dim=-1)
    shape = torch.stack([mobility, complexity, skew, kurt], dim=-1)
    return shape, torch.log(torch.stack([activity, dw.abs().mean(dim=-1), teager, 1 + crossings], dim=-1))


def numba_main(raw, gain, win=512, hop=128):
    channels, n = raw.shape
    nwin = (n - win) // hop + 1
    shape = np.empty((channels, nwin, 4), np.float32)
    energy = np.empty((channels, nwin, 4), np.float32)
    w = np.empty(win, np.float32)
    for c in range(channels):
        for j in range(nwin):
            mean = 0.0
            for i in range(win):
                w[i] = raw[c, j * hop + i] * gain[c]
                mean += w[i]
            mean /= win
            s2 = s3 = s4 = d1 = d2 = dd1 = dd2 = line = tk = 0.0
            crossings = 0
            for i in range(win):
                w[i] -= mean
                v = w[i]
                s2 += v * v
                s3 += v * v * v
                s4 += v * v * v * v
                if i >= 1:
                    d = v - w[i - 1]
                    d1 += d
                    d2 += d * d
                    line += abs(d)
                    crossings += (v < 0) != (w[i - 1] < 0)
                if i >= 2:
                    dd = v - 2 * w[i - 1] + w[i - 2]
                    dd1 += dd
                    dd2 += dd * dd
                    tk += w[i - 1] * w[i - 1] - w[i - 2] * v
            act = s2 / win
            var_d = d2 / (win - 1) - (d1 / (win - 1)) ** 2
            var_dd = dd2 / (win - 2) - (dd1 / (win - 2)) ** 2
            mob = np.sqrt(var_d / act)
            shape[c, j, 0] = mob
            shape[c, j, 1] = np.sqrt(var_dd / var_d) / mob
            shape[c, j, 2] = s3 / win / act ** 1.5
            shape[c, j, 3] = s4 / win / act ** 2 - 3
            energy[c, j, 0] = np.log(act)
            energy[c, j, 1] = np.log(line / (win - 1))
            energy[c, j, 2] = np.log(tk / (win - 2))
            energy[c, j, 3] = np.log(1.0 + crossings)
    return shape, energy
