"""Reduce the colours of a picture with k-means and judge the number of clusters.

Pixels are float32 RGB triples; k-means++ seeding, Lloyd iterations, a silhouette on a random subset, the
palette sorted by luminance, and the quantised picture with Floyd-Steinberg dithering.
"""
# outputs: 30
# (3 returned, 25 numbers printed, 2 arrays written)
import numpy as np

LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def picture():
    rng = np.random.default_rng(1982)
    h, w = 30, 40
    y, x = np.mgrid[0:h, 0:w]
    img = np.empty((h, w, 3), dtype=np.float32)
    img[...] = [120, 170, 220]
    img[y > 19] = [60, 120, 50]
    img[np.hypot(y - 7, x - 30) < 4.5] = [250, 210, 80]
    img[(np.abs(x - 11) < 5) & (np.abs(y - 16) < 6)] = [170, 70, 60]
    img += rng.normal(0, 9, img.shape).astype(np.float32)
    return np.clip(img, 0, 255).astype(np.uint8)


def pairwise_sq(a, b):
    d = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * (a @ b.T)
    return np.maximum(d, 0, out=d)


def seed_plus_plus(x, k, rng):
    centres = [x[rng.integers(len(x))]]
    best = ((x - centres[0]) ** 2).sum(axis=1)
    for _ in range(1, k):
        p = best.astype(np.float64)
        nxt = x[rng.choice(len(x), p=p / p.sum())]
        centres.append(nxt)
        best = np.minimum(best, ((x - nxt) ** 2).sum(axis=1))
    return np.array(centres)


def lloyd(x, centres, rounds=40):
    k = len(centres)
    assign = None
    for it in range(rounds):
        new = pairwise_sq(x, centres).argmin(axis=1)
        if assign is not None and np.array_equal(new, assign):
            break
        assign = new
        total = np.zeros((k, x.shape[1]))
        np.add.at(total, assign, x)
        size = np.bincount(assign, minlength=k)
        filled = size > 0
        centres = centres.copy()
        centres[filled] = total[filled] / size[filled, None]
    inertia = np.take_along_axis(pairwise_sq(x, centres), assign[:, None], axis=1).sum(dtype=np.float64)
    return centres, assign, inertia, it


def silhouette(x, assign, k):
    d = np.sqrt(pairwise_sq(x.astype(np.float64), x.astype(np.float64)))
    np.fill_diagonal(d, 0.0)
    member = np.eye(k)[assign]
    size = member.sum(axis=0)
    sums = d @ member
    rows = np.arange(len(x))
    own = sums[rows, assign] / np.maximum(size[assign] - 1, 1)
    other = sums / np.maximum(size, 1)
    other[rows, assign] = np.inf
    other[:, size == 0] = np.inf
    nearest = other.min(axis=1)
    return np.mean((nearest - own) / np.maximum(nearest, own))


def dither(img, palette):
    work = np.pad(img.astype(np.float32), ((0, 1), (1, 1), (0, 0)))
    h, w, _ = img.shape
    out = np.zeros((h, w), dtype=np.uint8)
    for i in range(h):
        for j in range(1, w + 1):
            old = work[i, j].copy()
            c = ((palette - old) ** 2).sum(axis=1).argmin()
            out[i, j - 1] = c
            err = (old - palette[c]) / 16
            work[i, j + 1] += 7 * err
            work[i + 1, j - 1:j + 2] += np.array([3, 5, 1], dtype=np.float32)[:, None] * err
    return out


def main():
    rng = np.random.default_rng(5)
    img = picture()
    x = img.reshape(-1, 3).astype(np.float32)
    subset = rng.choice(len(x), 70, replace=False)

    scores = {}
    results = {}
    for k in (2, 3, 4, 5, 6):
        tries = [lloyd(x, seed_plus_plus(x, k, rng)) for _ in range(2)]
        best = min(tries, key=lambda r: r[2])
        results[k] = best
        scores[k] = silhouette(x[subset], best[1][subset], k)
        print(f"k {k}  inertia {best[2]:12.1f}  rounds {best[3]:3d}  silhouette {scores[k]:.4f}")

    k = max(scores, key=scores.get)
    centres, assign, _, _ = results[k]
    order = np.argsort(centres @ LUMA)
    palette = centres[order]
    share = np.bincount(assign, minlength=k)[order] / assign.size
    print("best number of colours", k)
    for rgb, s in zip(np.rint(palette).astype(int), share):
        print("#{:02x}{:02x}{:02x}".format(*rgb), format(s, ".4f"))

    indexed = dither(img[:20, ::2], palette)
    error = palette[indexed] - img[:20, ::2]
    rms = np.sqrt(np.mean(error.astype(np.float64) ** 2))
    np.save("indexed.npy", indexed)
    palette.round().astype(np.uint8).tofile("palette.act")
    return palette, share, rms


if __name__ == "__main__":
    main()
