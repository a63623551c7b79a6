"""Land parcels on a map: areas, centroids, point location, distances to the nearest well."""
import csv

import numpy as np

EARTH_KM = 6371.0088


def make_inputs():
    rng = np.random.default_rng(606)
    parcels = {}
    for i in range(9):
        cx, cy = 1000.0 * (i % 3), 800.0 * (i // 3)
        n = int(rng.integers(5, 10))
        angle = np.sort(rng.uniform(0, 2 * np.pi, n))
        radius = rng.uniform(150.0, 380.0, n)
        ring = np.column_stack([cx + radius * np.cos(angle), cy + radius * np.sin(angle)])
        parcels[f"P{i + 1:02d}"] = np.round(ring, 2)
    trees = np.round(rng.uniform([-400, -400], [2400, 2000], size=(160, 2)), 1)
    wells = np.array([
        [47.3712, 8.5401], [47.3841, 8.5622], [47.3555, 8.5210], [47.4020, 8.5049],
    ])
    origin = (47.36, 8.53)
    return parcels, trees, wells, origin


def signed_area(ring):
    x, y = ring.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def centroid(ring):
    x, y = ring.T
    xn, yn = np.roll(x, -1), np.roll(y, -1)
    cross = x * yn - xn * y
    area6 = 3.0 * cross.sum()
    return np.array([((x + xn) * cross).sum(), ((y + yn) * cross).sum()]) / area6


def perimeter(ring):
    return float(np.linalg.norm(ring - np.roll(ring, -1, axis=0), axis=1).sum())


def inside(points, ring):
    """Even-odd rule for many points and one ring."""
    px, py = points[:, 0], points[:, 1]
    result = np.zeros(len(points), dtype=bool)
    for (x1, y1), (x2, y2) in zip(ring, np.roll(ring, -1, axis=0)):
        crosses = (y1 > py) != (y2 > py)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (x2 - x1) * (py - y1) / (y2 - y1) + x1
        result ^= crosses & (px < at)
    return result


def haversine(lat1, lon1, lat2, lon2):
    lat1, lon1, lat2, lon2 = map(np.radians, (lat1, lon1, lat2, lon2))
    h = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2.0 * EARTH_KM * np.arcsin(np.sqrt(h))


def to_geographic(xy, origin):
    lat0, lon0 = origin
    lat = lat0 + np.degrees(xy[:, 1] / 1000.0 / EARTH_KM)
    lon = lon0 + np.degrees(xy[:, 0] / 1000.0 / (EARTH_KM * np.cos(np.radians(lat0))))
    return lat, lon


def convex_hull(points):
    order = np.lexsort((points[:, 1], points[:, 0]))

    def half(sequence):
        chain = []
        for p in sequence:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-2], chain[-1]
                if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                    break
                chain.pop()
            chain.append(tuple(p))
        return chain[:-1]

    ordered = points[order]
    return np.array(half(ordered) + half(ordered[::-1]))


def run(parcels, trees, wells, origin):
    names = sorted(parcels)
    area = np.array([abs(signed_area(parcels[n])) for n in names])
    length = np.array([perimeter(parcels[n]) for n in names])
    centre = np.array([centroid(parcels[n]) for n in names])
    member = np.stack([inside(trees, parcels[n]) for n in names])
    trees_in = member.sum(axis=1)
    lat, lon = to_geographic(centre, origin)
    km = haversine(lat[:, None], lon[:, None], wells[:, 0], wells[:, 1])
    nearest = km.argmin(axis=1)
    hull = convex_hull(trees)
    with open("parcels.csv", "w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["parcel", "hectares", "trees", "well", "km"])
        for i, name in enumerate(names):
            writer.writerow([name, f"{area[i] / 1e4:.3f}", int(trees_in[i]), int(nearest[i]), f"{km[i].min():.3f}"])
    print(f"{area.sum() / 1e4:.2f} ha in {len(names)} parcels, {int(member.any(axis=0).sum())} trees inside")
    return {
        "area": area, "perimeter": length, "centroid": centre, "trees": trees_in,
        "well": nearest, "well_km": km.min(axis=1), "hull_area": abs(signed_area(hull)),
        "compactness": 4 * np.pi * area / length**2,
    }
