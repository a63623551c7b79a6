import numpy as np


def make_inputs():
    """Point cloud of a lidar sweep, whole metres, kept as half floats to save memory."""
    rng = np.random.default_rng(31)
    near = rng.integers(-30, 31, size=(150, 3))
    far = rng.integers(-400, 401, size=(90, 3))
    cloud = np.vstack([near, far]).astype(np.float16)
    cloud[:, 2] = np.abs(cloud[:, 2]) % 16
    origin = np.array([2, -3, 1], dtype=np.float16)
    return cloud, origin


def run(cloud, origin, max_range=250.0):
    offset = cloud - origin
    squared = offset ** 2
    r2 = squared[:, 0] + squared[:, 1] + squared[:, 2]
    distance = np.sqrt(r2)
    inside = distance <= max_range
    bearing = np.arctan2(offset[:, 1].astype(float), offset[:, 0].astype(float))
    sectors = ((bearing + np.pi) / (np.pi / 4)).astype(int) % 8
    counts = np.bincount(sectors[inside], minlength=8)
    return distance, counts


def exact(cloud, origin, max_range=250.0):
    dist, counts = [], [0] * 8
    o = [int(v) for v in origin]
    for p in cloud:
        dx, dy, dz = (int(v) - w for v, w in zip(p, o))
        r = (dx * dx + dy * dy + dz * dz) ** 0.5
        dist.append(r)
        if r <= max_range:
            counts[int((np.arctan2(dy, dx) + np.pi) / (np.pi / 4)) % 8] += 1
    return dist, counts


ANSWER = {
    "line": 17,
    "kind": "overflow",
    "operation": "squares in float16: beyond 65504 they become inf (and above 2048 they are rounded)",
    "outputs": {
        "distance (returned, first)": {"size": 240, "differ": 235},
        "counts (returned, second)": {"size": 8, "differ": 0},
    },
    "fix": "squared = offset.astype(np.float32) ** 2",
}
