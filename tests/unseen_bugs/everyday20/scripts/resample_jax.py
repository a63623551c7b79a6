"""Bring an accelerometer recording to a regular 100 Hz grid with JAX.

Time stamps are milliseconds since 1970, so JAX needs its 64 bit types switched on;
the samples themselves stay float32 for the model that reads them.
"""
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

T0 = 1_767_225_600_000
GRID_MS = 10


def recording(n=900, seed=2):
    rng = np.random.default_rng(seed)
    stamps = T0 + np.cumsum(rng.integers(7, 14, n))
    phase = (stamps - T0) / 1000
    accel = np.sin(2 * np.pi * 1.5 * phase) + rng.normal(0, 0.05, n)
    return jnp.asarray(stamps), jnp.asarray(accel, dtype=jnp.float32)


def smooth(x, width=7):
    window = jnp.hanning(width + 2)[1:-1]
    window = window / window.sum()
    return jnp.convolve(x, window, mode="same")


@jax.jit
def resample(stamps, x, grid):
    right = jnp.clip(jnp.searchsorted(stamps, grid), 1, len(stamps) - 1)
    left = right - 1
    span = stamps[right] - stamps[left]
    frac = ((grid - stamps[left]) / span).astype(jnp.float32)
    return x[left] + frac * (x[right] - x[left])


def main():
    stamps, accel = recording()
    clean = smooth(accel)
    grid = jnp.arange(stamps[0], stamps[-1], GRID_MS)
    regular = resample(stamps, clean, grid)
    print(f"{len(accel)} samples -> {len(regular)} at {1000 // GRID_MS} Hz")
    print(f"range {float(regular.min()):.2f} .. {float(regular.max()):.2f}")
    print(f"for the model: {regular.dtype}, {regular.nbytes} bytes")


if __name__ == "__main__":
    main()
