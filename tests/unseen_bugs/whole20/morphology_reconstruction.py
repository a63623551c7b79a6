"""Opening by reconstruction and its top-hat on a uint8 image.

Application: microscopy cell detection (background removal before a watershed).  The image is eroded a few times, then
the marker is dilated under the image (geodesic dilation) until nothing changes; the rest is the top-hat.
Public code with such a loop: scikit-image `morphology.reconstruction`
(https://github.com/scikit-image/scikit-image), mahotas, MATLAB's imreconstruct re-written in NumPy.
"""
import numpy as np

TOLERANCE = 0.0


def erode(a):
    p = np.pad(a, 1, constant_values=255)
    v = np.minimum(np.minimum(p[:-2], p[1:-1]), p[2:])
    return np.minimum(np.minimum(v[:, :-2], v[:, 1:-1]), v[:, 2:])


def dilate(a):
    p = np.pad(a, 1, constant_values=0)
    v = np.maximum(np.maximum(p[:-2], p[1:-1]), p[2:])
    return np.maximum(np.maximum(v[:, :-2], v[:, 1:-1]), v[:, 2:])


def main(img, radius=4):
    marker = img
    for _ in range(radius):
        marker = erode(marker)
    while True:
        grown = np.minimum(dilate(marker), img)
        if np.array_equal(grown, marker):
            break
        marker = grown
    tophat = img - marker
    return marker, tophat, int(np.count_nonzero(tophat > 20))


def inputs(rng):
    h, w = 192, 256
    yy, xx = np.mgrid[0:h, 0:w]
    img = 60 + 40 * np.sin(xx / 40.0) * np.cos(yy / 31.0)
    for _ in range(60):
        cy, cx, s = rng.uniform(0, h), rng.uniform(0, w), rng.uniform(1.5, 9)
        img += rng.uniform(30, 90) * (np.hypot(yy - cy, xx - cx) < s)
    img += rng.normal(0, 1.5, (h, w))
    return (np.clip(img, 0, 255).astype(np.uint8),)


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    pass


def jax_main(img, radius=4):
    def filter3(op, a, fill):
        p = jnp.pad(a, 1, constant_values=fill)
        v = op(op(p[:-2], p[1:-1]), p[2:])
        return op(op(v[:, :-2], v[:, 1:-1]), v[:, 2:])

    def erode(a):
        return filter3(jnp.minimum, a, 255)

    def dilate(a):
        return filter3(jnp.maximum, a, 0)

    marker = lax.fori_loop(0, radius, lambda _, m: erode(m), img)

    def body(state):
        m, _ = state
        grown = jnp.minimum(dilate(m), img)
        return grown, jnp.any(grown != m)

    marker, _ = lax.while_loop(lambda s: s[1], body, (marker, True))
    tophat = img - marker
    return marker, tophat, jnp.count_nonzero(tophat > 20)


try:
    import torch
    import torch.nn.functional as F

    def _torch_erode(a):
        p = F.pad(a, (1, 1, 1, 1), value=255)
        v = torch.minimum(torch.minimum(p[:-2], p[1:-1]), p[2:])
        return torch.minimum(torch.minimum(v[:, :-2], v[:, 1:-1]), v[:, 2:])

    def _torch_grow(p, img):  # p has a border of zeros, so that the step pads nothing before it reads
        v = torch.maximum(torch.maximum(p[:-2], p[1:-1]), p[2:])
        grown = torch.minimum(torch.maximum(torch.maximum(v[:, :-2], v[:, 1:-1]), v[:, 2:]), img)
        return F.pad(grown, (1, 1, 1, 1)), (grown != p[1:-1, 1:-1]).any()

    def torch_main(img, radius=4):
        marker = img
        for _ in range(radius):
            marker = _torch_erode(marker)
        padded = F.pad(marker, (1, 1, 1, 1))
        while True:
            padded, changed = _torch_grow(padded, img)
            if not changed:  # data-dependent: a graph break, so the steps are compiled and the loop is Python
                break
        marker = padded[1:-1, 1:-1].contiguous()
        tophat = img - marker
        return marker, tophat, (tophat > 20).sum()
except ImportError:
    torch_main = None


def numba_main(img, radius=4):
    h, w = img.shape
    marker = img.copy()
    tmp = np.empty_like(img)
    for _ in range(radius):
        for y in range(h):
            for x in range(w):
                v = marker[y, x]
                for yy in range(max(y - 1, 0), min(y + 2, h)):
                    for xx in range(max(x - 1, 0), min(x + 2, w)):
                        v = min(v, marker[yy, xx])
                tmp[y, x] = v
        marker, tmp = tmp, marker
    # raster and anti-raster sweeps until stable (the fixed point is the same)
    changed = True
    while changed:
        changed = False
        for y in range(h):
            for x in range(w):
                v = marker[y, x]
                if x > 0:
                    v = max(v, marker[y, x - 1])
                if y > 0:
                    for xx in range(max(x - 1, 0), min(x + 2, w)):
                        v = max(v, marker[y - 1, xx])
                v = min(v, img[y, x])
                if v != marker[y, x]:
                    marker[y, x] = v
                    changed = True
        for y in range(h - 1, -1, -1):
            for x in range(w - 1, -1, -1):
                v = marker[y, x]
                if x < w - 1:
                    v = max(v, marker[y, x + 1])
                if y < h - 1:
                    for xx in range(max(x - 1, 0), min(x + 2, w)):
                        v = max(v, marker[y + 1, xx])
                v = min(v, img[y, x])
                if v != marker[y, x]:
                    marker[y, x] = v
                    changed = True
    tophat = img - marker
    count = 0
    for y in range(h):
        for x in range(w):
            count += tophat[y, x] > 20
    return marker, tophat, count
