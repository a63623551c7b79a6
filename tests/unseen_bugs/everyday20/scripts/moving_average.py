"""Moving average of a long power recording kept in single precision."""
import os
import tempfile

import numpy as np


def recording(n=200_000, seed=11):
    rng = np.random.default_rng(seed)
    base = 230 + 5 * np.sin(np.arange(n) / 500)
    return (base + rng.normal(0, 0.5, n)).astype(np.float32)


def moving_average(x, window):
    """Running sums need the extra digits, the averages do not."""
    total = np.cumsum(x, dtype=np.float64)
    total = np.concatenate([[0.0], total])
    mean = (total[window:] - total[:-window]) / window
    return mean.astype(x.dtype)


def downsample(x, every):
    return x[::every].copy()


def outages(x, smooth, window, limit=2.0):
    centre = x[window // 2: window // 2 + len(smooth)]
    return np.flatnonzero(np.abs(centre - smooth) > limit)


def main():
    window = 60
    x = recording()
    smooth = moving_average(x, window)
    kept = downsample(smooth, 1000)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "smooth.txt")
        np.savetxt(path, kept, fmt="%.3f")
        size = os.path.getsize(path)
    direct = x[-window:].mean(dtype=np.float64)
    print(f"{len(smooth)} averages in {smooth.dtype}, last {smooth[-1]:.3f} (direct {direct:.3f})")
    print(f"{len(kept)} lines saved, {size} bytes")
    print(f"spikes: {len(outages(x, smooth, window))}")


if __name__ == "__main__":
    main()
