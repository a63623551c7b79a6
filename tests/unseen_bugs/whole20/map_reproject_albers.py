"""Reproject a longitude/latitude raster to an Albers equal-area map (bilinear).

Application: satellite or weather rasters to a map of a continent.  Every target pixel goes through the inverse
ellipsoidal Albers projection (authalic latitude by fixed-point iteration), and the float32 raster is sampled
bilinearly; outside the raster is NaN.
Public code with such a loop: rasterio/GDAL warp in NumPy form, pyresample (https://github.com/pytroll/pyresample),
PROJ's aea (https://github.com/OSGeo/PROJ).
"""
import numpy as np

TOLERANCE = 1e-5

A = 6378137.0
E2 = 0.00669438002290
E = np.sqrt(E2)


def q_of(s):
    return (1 - E2) * (s / (1 - E2 * s * s) - np.log((1 - E * s) / (1 + E * s)) / (2 * E))


def m_of(phi):
    return np.cos(phi) / np.sqrt(1 - E2 * np.sin(phi) ** 2)


def albers_inverse(x, y, lon0, lat0, lat1, lat2, iterations=5):
    m1, m2 = m_of(lat1), m_of(lat2)
    q0, q1, q2 = q_of(np.sin(lat0)), q_of(np.sin(lat1)), q_of(np.sin(lat2))
    n = (m1 * m1 - m2 * m2) / (q2 - q1)
    c = m1 * m1 + n * q1
    rho0 = A * np.sqrt(c - n * q0) / n
    rho = np.hypot(x, rho0 - y)
    theta = np.arctan2(x, rho0 - y)
    q = (c - (rho * n / A) ** 2) / n
    phi = np.arcsin(np.clip(q / 2, -1, 1))
    for _ in range(iterations):
        s = np.sin(phi)
        w = 1 - E2 * s * s
        phi = phi + w * w / (2 * np.cos(phi)) * (
            q / (1 - E2) - s / w + np.log((1 - E * s) / (1 + E * s)) / (2 * E))
    return lon0 + theta / n, phi


def bilinear(raster, row, col):
    h, w = raster.shape
    inside = (row >= 0) & (row <= h - 1) & (col >= 0) & (col <= w - 1)
    r0 = np.clip(np.floor(row).astype(np.int64), 0, h - 2)
    c0 = np.clip(np.floor(col).astype(np.int64), 0, w - 2)
    fr = (row - r0).astype(np.float32)
    fc = (col - c0).astype(np.float32)
    top = raster[r0, c0] * (1 - fc) + raster[r0, c0 + 1] * fc
    bottom = raster[r0 + 1, c0] * (1 - fc) + raster[r0 + 1, c0 + 1] * fc
    return np.where(inside, top * (1 - fr) + bottom * fr, np.float32(np.nan))


def main(raster, x, y, west, north, step, lon0, lat0, lat1, lat2):
    xx, yy = np.meshgrid(x, y)
    lon, lat = albers_inverse(xx, yy, *np.radians([lon0, lat0, lat1, lat2]))
    row = (north - np.degrees(lat)) / step
    col = (np.degrees(lon) - west) / step
    return bilinear(raster, row, col)


def inputs(rng):
    h, w, step = 1200, 2400, 0.025
    rows, cols = np.mgrid[0:h, 0:w]
    raster = (280 + 10 * np.sin(rows / 90) * np.cos(cols / 130) + rng.normal(0, 0.3, (h, w))).astype(np.float32)
    x = np.linspace(-2.3e6, 2.3e6, 360)
    y = np.linspace(1.6e6, -1.4e6, 220)
    return raster, x, y, -126.0, 52.0, step, -96.0, 37.5, 29.5, 45.5


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def _albers(xp, x, y, lon0, lat0, lat1, lat2, iterations=5):
    def q_of(s):
        return (1 - E2) * (s / (1 - E2 * s * s) - xp.log((1 - E * s) / (1 + E * s)) / (2 * E))

    def m_of(phi):
        return xp.cos(phi) / xp.sqrt(1 - E2 * xp.sin(phi) ** 2)

    m1, m2 = m_of(lat1), m_of(lat2)
    q0, q1, q2 = q_of(xp.sin(lat0)), q_of(xp.sin(lat1)), q_of(xp.sin(lat2))
    n = (m1 * m1 - m2 * m2) / (q2 - q1)
    c = m1 * m1 + n * q1
    rho0 = A * xp.sqrt(c - n * q0) / n
    rho = xp.hypot(x, rho0 - y)
    theta = xp.arctan2(x, rho0 - y)
    q = (c - (rho * n / A) ** 2) / n
    phi = xp.arcsin(xp.clip(q / 2, -1, 1))
    for _ in range(iterations):
        s = xp.sin(phi)
        w = 1 - E2 * s * s
        phi = phi + w * w / (2 * xp.cos(phi)) * (
            q / (1 - E2) - s / w + xp.log((1 - E * s) / (1 + E * s)) / (2 * E))
    return lon0 + theta / n, phi


def jax_main(raster, x, y, west, north, step, lon0, lat0, lat1, lat2):
    xx, yy = jnp.meshgrid(x, y)
    lon, lat = _albers(jnp, xx, yy, *(jnp.radians(v) for v in (lon0, lat0, lat1, lat2)))
    row = (north - jnp.degrees(lat)) / step
    col = (jnp.degrees(lon) - west) / step
    return jax.scipy.ndimage.map_coordinates(raster, [row, col], order=1, cval=jnp.nan).astype(jnp.float32)


try:
    import torch
except ImportError:
    pass


def torch_main(raster, x, y, west, north, step, lon0, lat0, lat1, lat2):
    xx, yy = torch.meshgrid(x, y, indexing="xy")
    angles = (torch.deg2rad(torch.tensor(v, dtype=torch.float64)) for v in (lon0, lat0, lat1, lat2))
    lon, lat = _albers(torch, xx, yy, *angles)
    row = (north - torch.rad2deg(lat)) / step
    col = (torch.rad2deg(lon) - west) / step
    h, w = raster.shape
    inside = (row >= 0) & (row <= h - 1) & (col >= 0) & (col <= w - 1)
    r0 = torch.floor(row).long().clamp(0, h - 2)
    c0 = torch.floor(col).long().clamp(0, w - 2)
    fr, fc = (row - r0).float(), (col - c0).float()
    top = raster[r0, c0] * (1 - fc) + raster[r0, c0 + 1] * fc
    bottom = raster[r0 + 1, c0] * (1 - fc) + raster[r0 + 1, c0 + 1] * fc
    return torch.where(inside, top * (1 - fr) + bottom * fr, torch.nan)


def numba_main(raster, x, y, west, north, step, lon0, lat0, lat1, lat2):
    s0, s1, s2 = np.sin(np.radians(lat0)), np.sin(np.radians(lat1)), np.sin(np.radians(lat2))
    m1 = np.cos(np.radians(lat1)) / np.sqrt(1 - E2 * s1 * s1)
    m2 = np.cos(np.radians(lat2)) / np.sqrt(1 - E2 * s2 * s2)
    q0 = (1 - E2) * (s0 / (1 - E2 * s0 * s0) - np.log((1 - E * s0) / (1 + E * s0)) / (2 * E))
    q1 = (1 - E2) * (s1 / (1 - E2 * s1 * s1) - np.log((1 - E * s1) / (1 + E * s1)) / (2 * E))
    q2 = (1 - E2) * (s2 / (1 - E2 * s2 * s2) - np.log((1 - E * s2) / (1 + E * s2)) / (2 * E))
    n = (m1 * m1 - m2 * m2) / (q2 - q1)
    c = m1 * m1 + n * q1
    rho0 = A * np.sqrt(c - n * q0) / n
    h, w = raster.shape
    out = np.empty((len(y), len(x)), np.float32)
    for i in range(len(y)):
        for j in range(len(x)):
            dy = rho0 - y[i]
            rho = np.sqrt(x[j] * x[j] + dy * dy)
            q = (c - (rho * n / A) ** 2) / n
            phi = np.arcsin(min(max(q / 2, -1.0), 1.0))
            for _ in range(5):
                s = np.sin(phi)
                k = 1 - E2 * s * s
                phi += k * k / (2 * np.cos(phi)) * (
                    q / (1 - E2) - s / k + np.log((1 - E * s) / (1 + E * s)) / (2 * E))
            row = (north - np.degrees(phi)) / step
            col = (lon0 + np.degrees(np.arctan2(x[j], dy) / n) - west) / step
            if row < 0 or row > h - 1 or col < 0 or col > w - 1:
                out[i, j] = np.nan
                continue
            r0 = min(int(row), h - 2)
            c0 = min(int(col), w - 2)
            fr = np.float32(row - r0)
            fc = np.float32(col - c0)
            one = np.float32(1)
            top = raster[r0, c0] * (one - fc) + raster[r0, c0 + 1] * fc
            bottom = raster[r0 + 1, c0] * (one - fc) + raster[r0 + 1, c0 + 1] * fc
            out[i, j] = top * (one - fr) + bottom * fr
    return out
