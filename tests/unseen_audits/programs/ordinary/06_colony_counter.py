"""Count bacterial colonies in a grey-scale photograph of a dish.

A synthetic 8-bit picture is smoothed, thresholded with Otsu's method, cleaned by an opening, and the
connected regions are labelled with a union-find pass over the runs; each colony gets area, centroid,
equivalent diameter, perimeter and mean brightness.
"""
# outputs: 44
# (3 returned, 39 numbers printed, 2 arrays written)
import numpy as np

H, W = 60, 72


def photograph(seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.ogrid[:H, :W]
    image = 60 + 18 * np.cos((xx - W / 2) / 40) + rng.normal(0, 5, (H, W))
    for _ in range(14):
        cy, cx = rng.uniform(6, H - 6), rng.uniform(6, W - 6)
        r = rng.uniform(1.8, 4.5)
        image += 110 / (1 + np.exp(2.5 * (np.hypot(yy - cy, xx - cx) - r)))
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def median3(image):
    p = np.pad(image, 1, mode="edge")
    stack = [p[i:i + H, j:j + W] for i in range(3) for j in range(3)]
    return np.median(np.stack(stack), axis=0).astype(np.uint8)


def otsu(image):
    count = np.bincount(image.ravel(), minlength=256)
    p = count / count.sum()
    level = np.arange(256)
    w0 = np.cumsum(p)
    mu = np.cumsum(p * level)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mu[-1] * w0 - mu) ** 2 / (w0 * (1 - w0))
    return int(np.nanargmax(np.where(np.isfinite(between), between, np.nan)))


def erode(mask):
    p = np.pad(mask, 1, constant_values=False)
    return p[1:-1, 1:-1] & p[:-2, 1:-1] & p[2:, 1:-1] & p[1:-1, :-2] & p[1:-1, 2:]


def dilate(mask):
    p = np.pad(mask, 1)
    return p[1:-1, 1:-1] | p[:-2, 1:-1] | p[2:, 1:-1] | p[1:-1, :-2] | p[1:-1, 2:]


def label(mask):
    parent = np.arange(mask.size, dtype=np.int32)

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    index = np.arange(mask.size, dtype=np.int32).reshape(mask.shape)
    right = mask[:, :-1] & mask[:, 1:]
    below = mask[:-1] & mask[1:]
    pairs = np.concatenate([np.stack([index[:, :-1][right], index[:, 1:][right]], 1),
                            np.stack([index[:-1][below], index[1:][below]], 1)])
    for a, b in pairs:
        ra, rb = find(a), find(b)
        if ra != rb:
            parent[max(ra, rb)] = min(ra, rb)
    roots = np.array([find(i) for i in np.flatnonzero(mask)])
    values, inverse = np.unique(roots, return_inverse=True)
    out = np.zeros(mask.shape, dtype=np.int32)
    out[mask] = inverse + 1
    return out, values.size


def measure(labels, n, image):
    area = np.bincount(labels.ravel(), minlength=n + 1)[1:]
    y, x = np.indices(labels.shape)
    cy = np.bincount(labels.ravel(), weights=y.ravel(), minlength=n + 1)[1:] / area
    cx = np.bincount(labels.ravel(), weights=x.ravel(), minlength=n + 1)[1:] / area
    light = np.bincount(labels.ravel(), weights=image.ravel(), minlength=n + 1)[1:] / area
    p = np.pad(labels, 1)
    edges = np.zeros(n + 1, dtype=int)
    for shifted in (p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]):
        np.add.at(edges, labels[labels != shifted], 1)
    return area, cy, cx, light, edges[1:]


def main():
    image = photograph(37)
    smooth = median3(image)
    threshold = otsu(smooth)
    mask = dilate(erode(smooth > threshold))
    labels, n = label(mask)
    area, cy, cx, light, edge = measure(labels, n, image)
    diameter = 2 * np.sqrt(area / np.pi)
    roundness = 4 * np.pi * area / edge ** 2

    print("threshold:", threshold, "colonies:", n)
    for k in np.argsort(-area, kind="stable")[:6]:
        print(f"area {area[k]:4d}  at ({cx[k]:5.1f}, {cy[k]:5.1f})  diameter {diameter[k]:5.2f}"
              f"  light {light[k]:6.1f}  roundness {roundness[k]:.3f}")
    covered = 100 * mask.mean()
    print("covered percent: %.3f" % covered)
    np.save("labels.npy", labels)
    np.savetxt("colonies.csv", np.column_stack([area, cy, cx, light]), delimiter=",", fmt="%.3f")
    return {"area": area, "median_diameter": np.median(diameter), "threshold": threshold}


if __name__ == "__main__":
    main()
