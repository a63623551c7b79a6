"""Ordinary NumPy programs, which have never heard of graphs: what recordings are tested on.

Each is a function of arrays; PROGRAMS gives arguments for each, dtypes mixed as they are in real
programs, where casts come unasked.
"""

from __future__ import annotations

import numpy as np


def stencil_heat(u, steps=4):
    """Explicit heat equation on a grid: in place, by slices of views."""
    u = u.copy()
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        laplacian = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
        inner += 0.1 * laplacian
    return u


def jacobi(a, b, sweeps=8):
    diagonal = np.diag(a)
    rest = a - np.diagflat(diagonal)
    x = np.zeros_like(b)
    for _ in range(sweeps):
        x = (b - rest @ x) / diagonal
    return x, np.linalg.norm(a @ x - b)


def fft_by_hand(x):
    """Radix 2, recursive."""
    n = x.shape[0]
    if n == 1:
        return x.astype(np.complex64)
    even, odd = fft_by_hand(x[::2]), fft_by_hand(x[1::2])
    factor = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + factor, even - factor])


def k_means(points, k=3, rounds=4):
    centres = points[:k].copy()
    for _ in range(rounds):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
        labels = distances.argmin(axis=1)
        for j in range(k):
            members = points[labels == j]
            if len(members):
                centres[j] = members.mean(axis=0)
    return centres, labels


def normal_cdf(x):
    """Abramowitz and Stegun 26.2.17."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = t * (
        0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
    )
    tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * poly
    return np.where(x > 0, 1 - tail, tail)


def black_scholes(spot, strike, years, rate=0.03, vol=0.2):
    root = vol * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + vol**2 / 2) * years) / root
    return spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d1 - root)


def n_body(positions, velocities, masses, steps=3, dt=0.01):
    positions, velocities = positions.copy(), velocities.copy()
    for _ in range(steps):
        offset = positions[None] - positions[:, None]
        cubed = ((offset**2).sum(-1) + 1e-3) ** 1.5
        velocities += dt * (masses[None, :, None] * offset / cubed[..., None]).sum(axis=1)
        positions += dt * velocities
    return positions, 0.5 * (masses * (velocities**2).sum(-1)).sum()


def mandelbrot(width, height, rounds=12):
    x = np.linspace(-2, 1, len(width), dtype=np.float32)
    y = np.linspace(-1, 1, len(height))
    c = x[None, :] + 1j * y[:, None] + 0 * (width[None, :] + height[:, None])
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, np.int16)
    for _ in range(rounds):
        alive = np.abs(z) <= 2
        z[alive] = z[alive] ** 2 + c[alive]
        counts[alive] += 1
    return counts


def lu(a):
    """Doolittle with partial pivoting, rows swapped in place."""
    a = a.astype(np.float64)
    n = len(a)
    order = np.arange(n)
    for i in range(n - 1):
        pivot = i + int(np.argmax(np.abs(a[i:, i])))
        if pivot != i:
            a[[i, pivot]] = a[[pivot, i]]
            order[[i, pivot]] = order[[pivot, i]]
        a[i + 1 :, i] /= a[i, i]
        a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :])
    return np.tril(a, -1) + np.eye(n), np.triu(a), order


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def attention(q, k, v, mask):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores = np.where(mask, scores, -1e9)
    return softmax(scores) @ v


def layer_norm(x, gain, bias, epsilon=1e-5):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + epsilon) * gain + bias


def gradient_descent(x, y, rate=0.05, steps=6):
    w, b = np.zeros(x.shape[1]), 0.0
    for _ in range(steps):
        error = x @ w + b - y
        w -= rate * (x.T @ error) / len(y)
        b -= rate * error.mean()
    return w, b, np.mean((x @ w + b - y) ** 2)


def z_score(x):
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


def correlation(x, y):
    dx, dy = x - x.mean(), y - y.mean()
    return (dx * dy).sum() / np.sqrt((dx * dx).sum() * (dy * dy).sum())


def box_blur(image):
    """An integer image, averaged over 3 by 3 and rounded back."""
    wide = np.pad(image, 1, mode="edge")
    total = np.zeros(image.shape)
    for i in range(3):
        for j in range(3):
            total += wide[i : i + image.shape[0], j : j + image.shape[1]]
    return np.rint(total / 9).astype(image.dtype)


def histogram_equalized(image):
    counts = np.zeros(16, np.int64)
    for value in range(16):
        counts[value] = (image == value).sum()
    cdf = counts.cumsum()
    scaled = (cdf - cdf.min()) * 15 / (cdf[-1] - cdf.min())
    return scaled[image].astype(np.uint8)


def power_iteration(a, steps=10):
    v = np.ones(a.shape[0], a.dtype)
    for _ in range(steps):
        v = a @ v
        v /= np.sqrt((v * v).sum())
    return v, v @ a @ v


def gram_schmidt(a):
    q = np.zeros(a.shape)
    for j in range(a.shape[1]):
        v = a[:, j].astype(float)
        for i in range(j):
            v -= (q[:, i] @ a[:, j]) * q[:, i]
        q[:, j] = v / np.sqrt(v @ v)
    return q


def moving_average(x, n=3):
    sums = np.cumsum(x, dtype=np.float64)
    sums[n:] = sums[n:] - sums[:-n]
    return sums[n - 1 :] / n


def runge_kutta(y, steps=5, h=0.1):
    """A Lotka-Volterra system."""

    def slope(y):
        return np.array([y[0] * (1.1 - 0.4 * y[1]), y[1] * (0.1 * y[0] - 0.4)])

    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def compensated_sum(x):
    total, carry = x.dtype.type(0), x.dtype.type(0)
    for one in x:
        y = one - carry
        t = total + y
        carry = (t - total) - y
        total = t
    return total


def rolling_hash(data):
    """Integers that wrap."""
    with np.errstate(over="ignore"):
        state = data[0] * np.uint32(2166136261)
        for one in data[1:]:
            state = (state ^ one) * np.uint32(16777619)
    return state


def interpolated(x, xp, fp):
    """Linear, by searchsorted and fancy indices."""
    at = np.clip(np.searchsorted(xp, x), 1, len(xp) - 1)
    low, high = xp[at - 1], xp[at]
    weight = (x - low) / (high - low)
    return fp[at - 1] * (1 - weight) + fp[at] * weight


def sobel(image):
    gx = image[1:-1, 2:] - image[1:-1, :-2] * np.float32(1)
    gy = image[2:, 1:-1] - image[:-2, 1:-1] * np.float32(1)
    return np.hypot(gx, gy), np.arctan2(gy, gx)


def adam(x, y, steps=4):
    w = np.zeros(x.shape[1], np.float32)
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t in range(1, steps + 1):
        g = 2 * x.T @ (x @ w - y) / len(y)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        w -= (0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)).astype(np.float32)
    return w


def quantized(x, w):
    """int8 weights and activations, as on small devices."""
    scale = np.abs(x).max() / 127
    q = np.clip(np.rint(x / scale), -128, 127).astype(np.int8)
    return (q.astype(np.int32) @ w.astype(np.int32)) * scale


def cholesky(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for j in range(n):
        low[j, j] = np.sqrt(a[j, j] - (low[j, :j] ** 2).sum())
        for i in range(j + 1, n):
            low[i, j] = (a[i, j] - low[i, :j] @ low[j, :j]) / low[j, j]
    return low


_RNG = np.random.default_rng(7)


def _floats(*shape, dtype=np.float32):
    return _RNG.standard_normal(shape).astype(dtype)


_SQUARE = _floats(5, 5, dtype=np.float64) + 6 * np.eye(5)

PROGRAMS = {
    stencil_heat: (_floats(7, 6),),
    jacobi: (_SQUARE, _floats(5)),
    fft_by_hand: (_floats(16),),
    k_means: (_floats(20, 2),),
    black_scholes: (
        np.array([90, 100, 110], np.int32),
        np.float32([100, 100, 95]),
        np.array([0.5, 1, 2]),
    ),
    n_body: (_floats(4, 3), _floats(4, 3), np.array([1.0, 2.0, 0.5, 1.5])),
    mandelbrot: (np.zeros(9, np.float32), np.zeros(7)),
    lu: (_floats(4, 4),),
    attention: (_floats(2, 4, 3), _floats(2, 4, 3), _floats(2, 4, 3), np.tri(4, dtype=bool)),
    layer_norm: (_floats(3, 8, dtype=np.float16), _floats(8), np.zeros(8)),
    gradient_descent: (_floats(12, 3), _RNG.integers(0, 5, 12)),
    z_score: (_RNG.integers(-9, 9, (10, 3)).astype(np.int16),),
    correlation: (_floats(15), _floats(15, dtype=np.float64)),
    box_blur: (_RNG.integers(0, 256, (5, 6)).astype(np.uint8),),
    histogram_equalized: (_RNG.integers(0, 16, (6, 6)).astype(np.uint8),),
    power_iteration: (_SQUARE.astype(np.float32),),
    gram_schmidt: (_floats(5, 3),),
    moving_average: (_RNG.integers(0, 50, 12).astype(np.int32),),
    runge_kutta: (np.float32([10, 5]),),
    compensated_sum: (_floats(9),),
    rolling_hash: (_RNG.integers(0, 256, 10).astype(np.uint8),),
    interpolated: (np.float32([0.5, 1.5, 2.25, 9]), np.arange(5), _floats(5, dtype=np.float64)),
    sobel: (_RNG.integers(0, 256, (6, 7)).astype(np.uint8),),
    adam: (_floats(10, 3), _floats(10, dtype=np.float64)),
    quantized: (_floats(4, 6), _RNG.integers(-128, 128, (6, 2)).astype(np.int8)),
    cholesky: (_SQUARE @ _SQUARE.T,),
    softmax: (_floats(3, 5, dtype=np.float16),),
}
