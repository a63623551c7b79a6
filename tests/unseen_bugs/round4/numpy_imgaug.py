"""Augments batches of images: mirrors some of them and scales all to one size.

https://github.com/aleju/imgaug/issues/442
"""
import numpy as np

CONFIG = {"size": (6, 9), "flip": 0.5, "seed": 7}


def corners(old, new):
    position = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    low = np.floor(position).astype(np.intp)
    return low, np.minimum(low + 1, old - 1), position - low


def imresize_single_image(image, size):
    y0, y1, fy = corners(image.shape[0], size[0])
    x0, x1, fx = corners(image.shape[1], size[1])
    fy, fx = fy[:, None, None], fx[None, :, None]
    top = image[y0][:, x0] * (1 - fx) + image[y0][:, x1] * fx
    bottom = image[y1][:, x0] * (1 - fx) + image[y1][:, x1] * fx
    out = top * (1 - fy) + bottom * fy
    if image.dtype.kind in "iu":
        info = np.iinfo(image.dtype)
        out = np.clip(np.rint(out), info.min, info.max)
    return out.astype(image.dtype)


class Augmenter:
    def __init__(self, seed):
        self.random_state = np.random.default_rng(seed)

    def augment_images(self, images):
        if not isinstance(images, list):
            assert images.ndim == 4, "expected (N, H, W, C)"
        return self._augment_images(images)


class Fliplr(Augmenter):
    def __init__(self, p, seed):
        super().__init__(seed)
        self.p = p

    def _augment_images(self, images):
        samples = self.random_state.random(len(images)) < self.p
        result = images.copy()
        for i, flip in enumerate(samples):
            if flip:
                result[i] = images[i][:, ::-1]
        return result


class Resize(Augmenter):
    def __init__(self, size, seed=None):
        super().__init__(seed)
        self.size = size

    def _augment_images(self, images):
        result = [imresize_single_image(image, self.size) for image in images]
        if not isinstance(images, list):
            all_same_size = len(set(image.shape for image in result)) == 1
            if all_same_size:
                result = np.array(result, dtype=np.uint8)
        return result


class Sequential(Augmenter):
    def __init__(self, children):
        super().__init__(None)
        self.children = children

    def _augment_images(self, images):
        for child in self.children:
            images = child.augment_images(images)
        return images


def build():
    return Sequential([Fliplr(CONFIG["flip"], CONFIG["seed"]), Resize(CONFIG["size"])])


def main(photos, depth):
    return build().augment_images(photos), build().augment_images(depth)


def inputs():
    rng = np.random.default_rng(5)
    photos = rng.integers(0, 256, (3, 10, 12, 3)).astype(np.uint8)
    return photos, rng.random((3, 10, 12, 1)).astype(np.float32)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
