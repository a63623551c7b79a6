"""Convolutions of signals, images and batches of images."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(lambda rng: (rng.standard_normal(30), rng.standard_normal(5)), scalars=True)
def convolve_valid(x, w):
    n, k = len(x), len(w)
    out = np.zeros(n - k + 1, dtype=x.dtype)
    for i in range(n - k + 1):
        for j in range(k):
            out[i] += x[i + j] * w[k - 1 - j]
    return out


@kernel(
    lambda rng: (
        rng.random((2, 9, 8, 3), dtype=np.float32),
        rng.random((3, 3, 3, 4), dtype=np.float32),
        rng.random(4, dtype=np.float32),
    )
)
def conv2d_bias(images, weights, bias):
    K = weights.shape[0]
    N = images.shape[0]
    H_out = images.shape[1] - K + 1
    W_out = images.shape[2] - K + 1
    output = np.empty((N, H_out, W_out, weights.shape[3]), dtype=np.float32)
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(
                images[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis, :, :, :],
                axis=(1, 2, 3),
            )
    return output + bias


@kernel(lambda rng: (rng.integers(0, 256, (13, 11), dtype=np.uint8), 2, 1.5))
def unsharp_mask(image, radius, amount):
    """Sharpen an image of bytes by its difference from a separable Gaussian blur."""
    x = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (x / radius) ** 2)
    weights /= weights.sum()
    padded = np.pad(image.astype(float), radius, mode="edge")
    rows = np.zeros((image.shape[0], padded.shape[1]))
    for k, w in enumerate(weights):
        rows += w * padded[k : k + image.shape[0], :]
    blurred = np.zeros(image.shape)
    for k, w in enumerate(weights):
        blurred += w * rows[:, k : k + image.shape[1]]
    sharp = image + amount * (image - blurred)
    np.clip(sharp, 0, 255, out=sharp)
    return np.rint(sharp).astype(np.uint8)
