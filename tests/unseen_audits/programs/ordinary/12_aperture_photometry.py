# outputs: 70
# (3 returned, 65 numbers printed, 2 arrays written)
"""
Aperture photometry of a star field.

16-bit frames are dark-corrected, the sky is estimated by iterative sigma clipping with masked arrays, stars
are detected as local maxima, measured in circular apertures with a sky annulus, and calibrated against
three standard stars.
"""
import numpy as np
import numpy.ma as ma

SIZE = 56
GAIN = 1.8            # electrons per count
READ_NOISE = 6.0


def make_frames():
    rng = np.random.default_rng(1801)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    field = np.full((SIZE, SIZE), 240.0)
    gx, gy = np.meshgrid([9, 21, 34, 46], [10, 28, 45])
    px = gx.ravel() + rng.uniform(-1.5, 1.5, 12)
    py = gy.ravel() + rng.uniform(-1.5, 1.5, 12)
    flux = 10 ** rng.uniform(3.6, 5.0, 12)
    for fx, fy, f in zip(px, py, flux):
        field += f / (2 * np.pi * 1.7 ** 2) * np.exp(-((x - fx) ** 2 + (y - fy) ** 2) / (2 * 1.7 ** 2))
    counts = rng.poisson(field * GAIN) / GAIN + rng.normal(0, READ_NOISE / GAIN, field.shape)
    dark = rng.normal(310, 2.5, field.shape)
    light = np.clip(counts + dark, 0, 65535).round().astype(np.uint16)
    light[rng.integers(0, SIZE, 5), rng.integers(0, SIZE, 5)] = 65535       # hot pixels
    return light, dark.round().astype(np.uint16), np.column_stack([px, py, flux])


def clip_sky(data, kappa=3.0, rounds=8):
    m = ma.masked_invalid(data)
    for _ in range(rounds):
        centre, width = ma.median(m), m.std()
        new = ma.masked_where(np.abs(m - centre) > kappa * width, m)
        if new.count() == m.count():
            break
        m = new
    return float(ma.median(m)), float(m.std())


def local_maxima(data, level):
    core = data[1:-1, 1:-1]
    peak = core > level
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dy or dx:
                peak &= core >= data[1 + dy:SIZE - 1 + dy, 1 + dx:SIZE - 1 + dx]
    yy, xx = np.nonzero(peak)
    return yy + 1, xx + 1


def photometry(data, bad, cx, cy, r=5.0, inner=7.0, outer=9.5):
    y, x = np.ogrid[:SIZE, :SIZE]
    for _ in range(3):            # recentre
        box = (np.hypot(x - cx, y - cy) < 4) & ~bad
        weight = np.clip(data - np.median(data), 0, None) * box
        cx = (weight * x).sum() / weight.sum()
        cy = (weight * y).sum() / weight.sum()
    d = np.hypot(x - cx, y - cy)
    aperture = np.clip(r + 0.5 - d, 0.0, 1.0)
    ring = (d > inner) & (d < outer) & ~bad
    sky, width = clip_sky(data[ring])
    net = ((data - sky) * aperture).sum()
    variance = net / GAIN + aperture.sum() * width ** 2 * (1 + aperture.sum() / ring.sum())
    return cx, cy, net, np.sqrt(max(variance, 0.0))


def main():
    light, dark, truth = make_frames()
    bad = light == np.iinfo(np.uint16).max
    image = light.astype(np.float64) - dark
    image[bad] = np.nan
    sky, noise = clip_sky(image)
    filled = np.where(bad, sky, image)
    print(f"sky {sky:.3f} noise {noise:.3f} bad pixels {bad.sum()}")

    yy, xx = local_maxima(filled, sky + 8 * noise)
    inside = (np.minimum(xx, yy) > 4) & (np.maximum(xx, yy) < SIZE - 5)
    found = [photometry(filled, bad, x, y) for x, y in zip(xx[inside], yy[inside])]
    found = np.array(found, dtype=[("x", "f8"), ("y", "f8"), ("net", "f8"), ("err", "f8")])
    found = found[found["net"] > 0]
    found[::-1].sort(order="net")

    distance = np.hypot(found["x"][:, None] - truth[:, 0], found["y"][:, None] - truth[:, 1])
    partner = distance.argmin(axis=1)
    matched = distance.min(axis=1) < 1.0
    print("detected", found.size, "matched", np.count_nonzero(matched))

    instrumental = -2.5 * np.log10(found["net"])
    catalogue = 25.0 - 2.5 * np.log10(truth[partner, 2])
    zero = np.mean((catalogue - instrumental)[matched][:3])
    magnitude = instrumental + zero
    error = 1.0857 * found["err"] / found["net"]
    for s, m, e, c in zip(found, magnitude, error, catalogue):
        print(f"{s['x']:7.2f} {s['y']:7.2f} {m:8.3f} {e:6.3f} {m - c:+7.3f}")

    scatter = np.std((magnitude - catalogue)[matched])
    np.save("stars.npy", found)
    np.savetxt("magnitudes.txt", np.c_[magnitude, error], fmt="%.4f")
    return zero, scatter, found["net"]


if __name__ == "__main__":
    main()
