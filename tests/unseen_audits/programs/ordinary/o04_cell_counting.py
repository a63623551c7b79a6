"""Counting of bright cells in a microscope image: blur, threshold, labels, areas."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(404)
    size = 96
    yy, xx = np.mgrid[:size, :size]
    image = 18.0 + 0.08 * xx + 0.05 * yy
    for _ in range(17):
        cy, cx = rng.uniform(6, size - 6, 2)
        radius = rng.uniform(2.5, 4.5)
        bright = rng.uniform(70.0, 150.0)
        image = image + bright * np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / (2 * radius**2 / 2.0))
    image = image + rng.normal(0.0, 4.0, (size, size))
    return np.clip(np.rint(image), 0, 255).astype(np.uint8), 0.65


def gaussian_kernel(sigma):
    radius = int(np.ceil(3 * sigma))
    x = np.arange(-radius, radius + 1, dtype=np.float32)
    kernel = np.exp(-0.5 * (x / np.float32(sigma)) ** 2)
    return kernel / kernel.sum()


def blur(image, sigma):
    kernel = gaussian_kernel(sigma)
    pad = kernel.size // 2
    work = np.pad(image.astype(np.float32), pad, mode="reflect")
    work = np.apply_along_axis(np.convolve, 0, work, kernel, mode="valid")
    return np.apply_along_axis(np.convolve, 1, work, kernel, mode="valid")


def otsu(image, n_bins=64):
    hist, edges = np.histogram(image, bins=n_bins)
    centres = 0.5 * (edges[1:] + edges[:-1])
    weight = np.cumsum(hist)
    mass = np.cumsum(hist * centres)
    low = weight[:-1]
    high = weight[-1] - low
    mean_low = mass[:-1] / np.maximum(low, 1)
    mean_high = (mass[-1] - mass[:-1]) / np.maximum(high, 1)
    between = low * high * (mean_low - mean_high) ** 2
    return float(edges[1:-1][between.argmax()])


class Labels:
    """Connected components with four neighbours by union and find."""

    def __init__(self, mask):
        self.mask = mask
        self.parent = np.arange(mask.size, dtype=np.int32)

    def root(self, i):
        while self.parent[i] != i:
            self.parent[i] = self.parent[self.parent[i]]
            i = self.parent[i]
        return int(i)

    def join(self, a, b):
        ra, rb = self.root(a), self.root(b)
        if ra != rb:
            self.parent[max(ra, rb)] = min(ra, rb)

    def compute(self):
        rows, cols = self.mask.shape
        for r, c in np.argwhere(self.mask).tolist():
            here = r * cols + c
            if c + 1 < cols and self.mask[r, c + 1]:
                self.join(here, here + 1)
            if r + 1 < rows and self.mask[r + 1, c]:
                self.join(here, here + cols)
        inside = np.flatnonzero(self.mask)
        roots = np.array([self.root(i) for i in inside.tolist()], dtype=np.int32)
        _, number = np.unique(roots, return_inverse=True)
        label = np.zeros(self.mask.size, dtype=np.int32)
        label[inside] = number.ravel() + 1
        return label.reshape(self.mask.shape)


def measure(label, image, pixel_um):
    n = int(label.max())
    flat = label.ravel()
    area = np.bincount(flat, minlength=n + 1)[1:]
    light = np.bincount(flat, weights=image.ravel(), minlength=n + 1)[1:]
    rows, cols = np.indices(label.shape)
    cy = np.bincount(flat, weights=rows.ravel(), minlength=n + 1)[1:] / area
    cx = np.bincount(flat, weights=cols.ravel(), minlength=n + 1)[1:] / area
    return area, light / area, np.column_stack([cy, cx]) * pixel_um


def run(image, pixel_um):
    smooth = blur(image, 1.2)
    level = otsu(smooth)
    label = Labels(smooth > level).compute()
    area, brightness, centre = measure(label, image, pixel_um)
    large = area >= 12
    diameter = 2.0 * np.sqrt(area[large] * pixel_um**2 / np.pi)
    print(f"threshold {level:.2f}, {int(large.sum())} cells, {int((~large).sum())} specks")
    np.save("labels.npy", label.astype(np.uint8))
    return {
        "smooth": smooth,
        "level": level,
        "area": area,
        "brightness": brightness[large],
        "centre": centre[large],
        "diameter": diameter,
    }
