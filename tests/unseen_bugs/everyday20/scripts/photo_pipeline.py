"""Prepare a photo for the classifier: crop, soften, normalise, save as .npy."""
import os
import tempfile

import numpy as np

MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def load_photo(height=160, width=200, seed=7):
    """Stand-in for the camera: an RGB picture in 8 bits."""
    rng = np.random.default_rng(seed)
    ramp = np.linspace(20, 220, width)
    img = np.repeat(ramp[None, :, None], height, axis=0).repeat(3, axis=2)
    img += rng.normal(0, 8, img.shape)
    return np.clip(img, 0, 255).astype(np.uint8)


def center_crop(img, size):
    top = (img.shape[0] - size) // 2
    left = (img.shape[1] - size) // 2
    return img[top:top + size, left:left + size]


def gaussian_kernel(sigma, radius):
    x = np.arange(-radius, radius + 1)
    k = np.exp(-(x ** 2) / (2 * sigma ** 2))
    return k / k.sum()


def blur(img, sigma=1.2, radius=3):
    kernel = gaussian_kernel(sigma, radius)
    h, w = img.shape[:2]
    padded = np.pad(img, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    rows = sum(c * padded[i:i + h] for i, c in enumerate(kernel))
    return sum(c * rows[:, i:i + w] for i, c in enumerate(kernel))


def prepare(img, size=128):
    img = center_crop(img, size)
    img = img.astype(np.float32) / 255
    img = blur(img)
    return (img - MEAN) / STD


def main():
    batch = np.stack([prepare(load_photo(seed=s)) for s in range(4)])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "batch.npy")
        np.save(path, batch)
        again = np.load(path)
    print(f"saved {again.shape} {again.dtype}, {again.nbytes / 1024:.0f} KiB")
    print(f"channel means {again.mean(axis=(0, 1, 2)).round(3)}")


if __name__ == "__main__":
    main()
