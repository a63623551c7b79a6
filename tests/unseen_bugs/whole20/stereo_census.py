"""Census-transform stereo matching with box aggregation and sub-pixel winner-takes-all.

Application: disparity maps from a rectified uint8 stereo pair (robotics, the front half of SGM).
Public code with such a loop: the many NumPy SGM ports (e.g. https://github.com/beaupreda/semi-global-matching) and
OpenCV-contrib stereo's census kernels.
"""
import numpy as np

TOLERANCE = 1e-6


def census5x5(img):
    h, w = img.shape
    p = np.pad(img, 2, mode="edge")
    code = np.zeros((h, w), dtype=np.uint32)
    for dy in range(5):
        for dx in range(5):
            if dy == 2 and dx == 2:
                continue
            code = (code << 1) | (p[dy:dy + h, dx:dx + w] < img)
    return code


def box_sum(cost, r):
    c = np.pad(cost, ((0, 0), (r + 1, r), (r + 1, r))).cumsum(axis=1).cumsum(axis=2)
    k = 2 * r + 1
    return c[:, k:, k:] - c[:, :-k, k:] - c[:, k:, :-k] + c[:, :-k, :-k]


def main(left, right, max_disp=24, r=3):
    h, w = left.shape
    cl, cr = census5x5(left), census5x5(right)
    cost = np.full((max_disp, h, w), 24, dtype=np.int32)
    for d in range(max_disp):
        cost[d, :, d:] = np.bitwise_count(cl[:, d:] ^ cr[:, :w - d])
    agg = box_sum(cost, r)
    best = agg.argmin(axis=0)
    mid = np.clip(best, 1, max_disp - 2)
    yy, xx = np.indices((h, w), sparse=True)
    c0, c1, c2 = agg[mid - 1, yy, xx], agg[mid, yy, xx], agg[mid + 1, yy, xx]
    denom = c0 - 2 * c1 + c2
    offset = np.where((best == mid) & (denom > 0), 0.5 * (c0 - c2) / np.maximum(denom, 1), 0.0)
    return (best + offset).astype(np.float32), agg.min(axis=0).astype(np.int32)


def inputs(rng):
    h, w = 96, 160
    base = rng.integers(0, 256, (h, w + 32)).astype(np.float64)
    base = (base + np.roll(base, 1, 1) + np.roll(base, 1, 0)) / 3
    yy, xx = np.mgrid[0:h, 0:w]
    disp = (6 + 8 * (np.hypot(yy - 48, xx - 80) < 35) + 3 * (xx > 110)).astype(int)
    left = base[yy, xx + 24 - disp]
    right = base[:, 24:24 + w]
    noise = rng.normal(0, 2, (2, h, w))
    return tuple(np.clip(a + n, 0, 255).astype(np.uint8) for a, n in zip((left, right), noise))


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    pass


def jax_main(left, right, max_disp=24, r=3):
    h, w = left.shape

    def census(img):
        p = jnp.pad(img, 2, mode="edge")
        code = jnp.zeros((h, w), jnp.uint32)
        for dy in range(5):
            for dx in range(5):
                if dy != 2 or dx != 2:
                    code = (code << 1) | (p[dy:dy + h, dx:dx + w] < img).astype(jnp.uint32)
        return code

    cl, cr = census(left), census(right)
    padded = jnp.pad(cr, ((0, 0), (max_disp, 0)))

    def one(d):
        shifted = lax.dynamic_slice(padded, (0, max_disp - d), (h, w))
        c = lax.population_count(cl ^ shifted).astype(jnp.int32)
        return jnp.where(jnp.arange(w) >= d, c, 24)

    cost = jax.vmap(one)(jnp.arange(max_disp))
    k = 2 * r + 1
    agg = lax.reduce_window(cost, np.int32(0), lax.add, (1, k, 1), (1, 1, 1), "SAME")
    agg = lax.reduce_window(agg, np.int32(0), lax.add, (1, 1, k), (1, 1, 1), "SAME")
    best = agg.argmin(axis=0)
    mid = jnp.clip(best, 1, max_disp - 2)
    c0, c1, c2 = (jnp.take_along_axis(agg, (mid + o)[None], axis=0)[0] for o in (-1, 0, 1))
    denom = c0 - 2 * c1 + c2
    offset = jnp.where((best == mid) & (denom > 0), 0.5 * (c0 - c2) / jnp.maximum(denom, 1), 0.0)
    return (best + offset).astype(jnp.float32), agg.min(axis=0)


try:
    import torch
    import torch.nn.functional as F
except ImportError:
    pass


def _torch_popcount(v):
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return (v + (v >> 8) + (v >> 16) + (v >> 24)) & 0x3F


def torch_main(left, right, max_disp=24, r=3):
    h, w = left.shape

    def census(img):
        img = img.to(torch.int32)
        yy = torch.arange(-2, h + 2).clamp(0, h - 1)
        xx = torch.arange(-2, w + 2).clamp(0, w - 1)
        p = img[yy][:, xx]
        code = torch.zeros((h, w), dtype=torch.int32)
        for dy in range(5):
            for dx in range(5):
                if dy != 2 or dx != 2:
                    code = (code << 1) | (p[dy:dy + h, dx:dx + w] < img).to(torch.int32)
        return code

    cl, cr = census(left), census(right)
    shifted = F.pad(cr, (max_disp - 1, 0)).unfold(1, w, 1).flip(1).transpose(0, 1)
    cost = _torch_popcount(cl ^ shifted)
    valid = torch.arange(w) >= torch.arange(max_disp)[:, None]
    cost = torch.where(valid[:, None], cost, 24)
    k = 2 * r + 1
    agg = F.avg_pool2d(cost.to(torch.float32)[None], k, 1, r, divisor_override=1)[0].round().to(torch.int32)
    best = agg.argmin(dim=0)
    mid = best.clamp(1, max_disp - 2)
    c0, c1, c2 = (agg.gather(0, (mid + o)[None])[0] for o in (-1, 0, 1))
    denom = c0 - 2 * c1 + c2
    offset = torch.where((best == mid) & (denom > 0), 0.5 * (c0 - c2) / denom.clamp(min=1), 0.0)
    return (best + offset).to(torch.float32), agg.amin(dim=0)


def numba_main(left, right, max_disp=24, r=3):
    h, w = left.shape
    codes = np.zeros((2, h, w), np.uint32)
    for s in range(2):
        img = left if s == 0 else right
        for y in range(h):
            for x in range(w):
                code = np.uint32(0)
                for dy in range(-2, 3):
                    yy = min(max(y + dy, 0), h - 1)
                    for dx in range(-2, 3):
                        if dy == 0 and dx == 0:
                            continue
                        xx = min(max(x + dx, 0), w - 1)
                        code = np.uint32((code << np.uint32(1)) | np.uint32(img[yy, xx] < img[y, x]))
                codes[s, y, x] = code
    agg = np.zeros((max_disp, h, w), np.int32)
    integral = np.zeros((h + 1, w + 1), np.int32)
    for d in range(max_disp):
        for y in range(h):
            row = 0
            for x in range(w):
                c = 24
                if x >= d:
                    v = codes[0, y, x] ^ codes[1, y, x - d]
                    v = v - ((v >> 1) & 0x55555555)
                    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
                    v = (v + (v >> 4)) & 0x0F0F0F0F
                    c = (v + (v >> 8) + (v >> 16) + (v >> 24)) & 0x3F
                row += c
                integral[y + 1, x + 1] = integral[y, x + 1] + row
        for y in range(h):
            y0, y1 = max(y - r, 0), min(y + r + 1, h)
            for x in range(w):
                x0, x1 = max(x - r, 0), min(x + r + 1, w)
                agg[d, y, x] = integral[y1, x1] - integral[y0, x1] - integral[y1, x0] + integral[y0, x0]
    disp = np.empty((h, w), np.float32)
    low = np.empty((h, w), np.int32)
    for y in range(h):
        for x in range(w):
            b = 0
            for d in range(1, max_disp):
                if agg[d, y, x] < agg[b, y, x]:
                    b = d
            off = 0.0
            if 1 <= b <= max_disp - 2:
                c0, c1, c2 = agg[b - 1, y, x], agg[b, y, x], agg[b + 1, y, x]
                denom = c0 - 2 * c1 + c2
                if denom > 0:
                    off = 0.5 * (c0 - c2) / denom
            disp[y, x] = b + off
            low[y, x] = agg[b, y, x]
    return disp, low
