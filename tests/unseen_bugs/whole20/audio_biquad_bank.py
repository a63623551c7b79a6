"""Constant-Q biquad filter bank with envelope followers, sample by sample.

Application: audio level meter / vocoder analysis stage / auditory front end.  A bank of RBJ band-pass biquads runs in
transposed direct form II, all bands at once, over the samples of a block; each band is followed by a one-pole envelope
whose level is read out in dB every `hop` samples.
Public code with such a loop: pyfilterbank (https://github.com/SiggiGue/pyfilterbank), python-acoustics, and the many
"brian hears"-like gammatone banks (https://github.com/brian-team/brian2hears).
"""
import numpy as np

TOLERANCE = 1e-9


def bandpass_coefficients(freqs, fs, q):
    w0 = 2 * np.pi * freqs / fs
    alpha = np.sin(w0) / (2 * q)
    a0 = 1 + alpha
    return alpha / a0, -alpha / a0, -2 * np.cos(w0) / a0, (1 - alpha) / a0


def main(x, freqs, fs, q, attack=0.005, hop=64):
    b0, b2, a1, a2 = bandpass_coefficients(freqs, fs, q)
    k = 1 - np.exp(-1.0 / (attack * fs))
    n, bands = len(x), len(freqs)
    z1 = np.zeros(bands)
    z2 = np.zeros(bands)
    env = np.zeros(bands)
    y = np.empty((n, bands))
    envelope = np.empty((n, bands))
    for i in range(n):
        out = b0 * x[i] + z1
        z1 = z2 - a1 * out
        z2 = b2 * x[i] - a2 * out
        env += k * (np.abs(out) - env)
        y[i] = out
        envelope[i] = env
    levels = 20 * np.log10(np.maximum(envelope[hop - 1::hop], 1e-8))
    return y, levels


def inputs(rng):
    fs = 16000.0
    n = 1024
    t = np.arange(n) / fs
    x = np.sin(2 * np.pi * (300 + 20000 * t) * t) + 0.1 * rng.standard_normal(n)
    freqs = np.geomspace(80.0, 7000.0, 32)
    return x, freqs, fs, 4.0


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(x, freqs, fs, q, attack=0.005, hop=64):
    w0 = 2 * jnp.pi * freqs / fs
    alpha = jnp.sin(w0) / (2 * q)
    a0 = 1 + alpha
    b0, b2, a1, a2 = alpha / a0, -alpha / a0, -2 * jnp.cos(w0) / a0, (1 - alpha) / a0
    k = 1 - jnp.exp(-1.0 / (attack * fs))

    def step(carry, xi):
        z1, z2, env = carry
        out = b0 * xi + z1
        env = env + k * (jnp.abs(out) - env)
        return (z2 - a1 * out, b2 * xi - a2 * out, env), (out, env)

    zero = jnp.zeros_like(freqs)
    _, (y, envelope) = lax.scan(step, (zero, zero, zero), x)
    return y, 20 * jnp.log10(jnp.maximum(envelope[hop - 1::hop], 1e-8))


try:
    import torch

    def _torch_step(xi, z1, z2, env, b0, b2, a1, a2, k):
        out = b0 * xi + z1
        return out, z2 - a1 * out, b2 * xi - a2 * out, env + k * (out.abs() - env)

    def torch_main(x, freqs, fs, q, attack=0.005, hop=64):
        w0 = 2 * np.pi * freqs / fs
        alpha = torch.sin(w0) / (2 * q)
        a0 = 1 + alpha
        b0, b2, a1, a2 = alpha / a0, -alpha / a0, -2 * torch.cos(w0) / a0, (1 - alpha) / a0
        k = 1 - torch.exp(torch.tensor(-1.0 / (attack * fs), dtype=x.dtype))
        z1 = torch.zeros_like(freqs)
        z2 = torch.zeros_like(freqs)
        env = torch.zeros_like(freqs)
        ys, envs = [], []
        for xi in x.unbind():
            torch._dynamo.graph_break()  # do not unroll a thousand steps: compile the step, keep the loop in Python
            out, z1, z2, env = _torch_step(xi, z1, z2, env, b0, b2, a1, a2, k)
            ys.append(out)
            envs.append(env)
        envelope = torch.stack(envs)
        return torch.stack(ys), 20 * torch.log10(torch.clamp(envelope[hop - 1::hop], min=1e-8))
except ImportError:
    torch_main = None


def numba_main(x, freqs, fs, q, attack=0.005, hop=64):
    n, bands = len(x), len(freqs)
    k = 1 - np.exp(-1.0 / (attack * fs))
    y = np.empty((n, bands))
    levels = np.empty((n // hop, bands))
    for b in range(bands):
        w0 = 2 * np.pi * freqs[b] / fs
        alpha = np.sin(w0) / (2 * q)
        a0 = 1 + alpha
        b0, b2, a1, a2 = alpha / a0, -alpha / a0, -2 * np.cos(w0) / a0, (1 - alpha) / a0
        z1 = z2 = env = 0.0
        for i in range(n):
            out = b0 * x[i] + z1
            z1 = z2 - a1 * out
            z2 = b2 * x[i] - a2 * out
            env += k * (abs(out) - env)
            y[i, b] = out
            if (i + 1) % hop == 0:
                levels[i // hop, b] = 20 * np.log10(max(env, 1e-8))
    return y, levels
