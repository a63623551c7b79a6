"""A chain of photometric augmentors for training images, with the random factors drawn in advance.

https://github.com/tensorpack/tensorpack/issues/614
"""
import numpy as np

CONFIG = [("Brightness", {"delta": 30.0}), ("Contrast", {"low": 0.6, "high": 1.4}),
          ("Saturation", {"alpha": 0.4}), ("Flip", {})]


def bgr2grey(img):
    return img @ np.array([0.114, 0.587, 0.299], dtype=np.float32)


class Augmentor:
    def sample(self, rng):
        return None

    def augment(self, img, rng):
        return self.apply(img, self.sample(rng))


class Brightness(Augmentor):
    def __init__(self, delta, clip=True):
        self.delta, self.clip = delta, clip

    def sample(self, rng):
        return rng.uniform(-self.delta, self.delta)

    def apply(self, img, v):
        old_dtype = img.dtype
        img = img.astype(np.float32)
        img += v
        if self.clip or old_dtype == np.uint8:
            img = np.clip(img, 0, 255)
        return img.astype(old_dtype)


class Contrast(Augmentor):
    def __init__(self, low, high, clip=True):
        self.low, self.high, self.clip = low, high, clip

    def sample(self, rng):
        return rng.uniform(self.low, self.high)

    def apply(self, img, r):
        old_dtype = img.dtype
        img = img.astype(np.float32)
        mean = img.mean(axis=(0, 1), keepdims=True)
        img = (img - mean) * np.float32(r) + mean
        if self.clip or old_dtype == np.uint8:
            img = np.clip(img, 0, 255)
        return img.astype(old_dtype)


class Saturation(Augmentor):
    def __init__(self, alpha):
        assert alpha < 1
        self.alpha = alpha

    def sample(self, rng):
        return 1 + rng.uniform(-self.alpha, self.alpha)

    def apply(self, img, v):
        old_dtype = img.dtype
        img = img.astype(np.float32)
        grey = bgr2grey(img)
        mixed = img * np.float32(v) + (grey * np.float32(1 - v))[:, :, np.newaxis]
        return mixed.astype(old_dtype)


class Flip(Augmentor):
    def sample(self, rng):
        return rng.uniform() < 0.5

    def apply(self, img, do):
        return np.ascontiguousarray(img[:, ::-1]) if do else img


AUGMENTORS = {c.__name__: c for c in (Brightness, Contrast, Saturation, Flip)}


class AugmentorList:
    def __init__(self, config):
        self.augmentors = [AUGMENTORS[name](**args) for name, args in config]

    def augment(self, img, rng):
        for aug in self.augmentors:
            img = aug.augment(img, rng)
        return img


def main(images):
    augmentors = AugmentorList(CONFIG)
    rng = np.random.default_rng(7)
    batch = np.stack([augmentors.augment(img, rng) for img in images])
    mean = batch.reshape(len(batch), -1).mean(axis=1, dtype=np.float64)
    return batch, mean


def inputs():
    rng = np.random.default_rng(3)
    images = rng.integers(40, 216, size=(3, 12, 12, 3)).astype(np.uint8)
    images[:, :6, :, 2] = 250
    images[:, 6:, :, 0] = 4
    return (images,)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
