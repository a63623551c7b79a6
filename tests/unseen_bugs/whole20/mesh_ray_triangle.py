"""Nearest hits of a bundle of rays with a triangle mesh (Moller-Trumbore, brute force).

Application: visibility, lidar simulation, ambient occlusion on small meshes.  All rays against all triangles by
broadcasting, the nearest hit of every ray, Lambert shading at the hit.
Public code with such a loop: trimesh `ray.ray_triangle` (https://github.com/mikedh/trimesh) and small NumPy ray
tracers.
"""
import numpy as np

TOLERANCE = 1e-9


def intersect(origins, directions, v0, e1, e2, eps=1e-9):
    pvec = np.cross(directions[:, None, :], e2[None, :, :])
    det = np.sum(e1 * pvec, axis=-1)
    ok = np.abs(det) > eps
    inv = 1.0 / np.where(ok, det, 1.0)
    tvec = origins[:, None, :] - v0
    u = np.sum(tvec * pvec, axis=-1) * inv
    qvec = np.cross(tvec, e1)
    v = np.sum(directions[:, None, :] * qvec, axis=-1) * inv
    t = np.sum(e2 * qvec, axis=-1) * inv
    hit = ok & (u >= 0) & (v >= 0) & (u + v <= 1) & (t > eps)
    return np.where(hit, t, np.inf)


def main(vertices, faces, origins, directions, light):
    v0 = vertices[faces[:, 0]]
    e1 = vertices[faces[:, 1]] - v0
    e2 = vertices[faces[:, 2]] - v0
    t = intersect(origins, directions, v0, e1, e2)
    face = np.argmin(t, axis=1)
    depth = t[np.arange(len(t)), face]
    normal = np.cross(e1, e2)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    shade = np.abs(normal[face] @ light)
    missed = np.isinf(depth)
    return np.where(missed, -1, face).astype(np.int32), depth, np.where(missed, 0.0, shade)


def inputs(rng):
    rings, segments, rays = 11, 14, 400
    theta = np.linspace(0.15, np.pi - 0.15, rings)[:, None]
    phi = np.linspace(0, 2 * np.pi, segments, endpoint=False)[None]
    ball = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta) + 0 * phi], -1)
    vertices = (ball * (1 + 0.1 * rng.standard_normal(ball.shape[:2]))[..., None]).reshape(-1, 3)
    i, j = np.mgrid[0:rings - 1, 0:segments]
    a, b = i * segments + j, i * segments + (j + 1) % segments
    faces = np.concatenate([np.stack([a, b, a + segments], -1), np.stack([b, b + segments, a + segments], -1)])
    yy, xx = np.mgrid[-1.3:1.3:20j, -1.3:1.3:20j]
    origins = np.stack([xx.ravel(), yy.ravel(), np.full(rays, 3.0)], -1)
    directions = np.stack([0.05 * rng.standard_normal(rays), 0.05 * rng.standard_normal(rays), -np.ones(rays)], -1)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return vertices, faces.reshape(-1, 3).astype(np.int32), origins, directions, np.array([0.36, 0.48, 0.8])


try:
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(vertices, faces, origins, directions, light):
    tri = vertices[faces]
    v0, e1, e2 = tri[:, 0], tri[:, 1] - tri[:, 0], tri[:, 2] - tri[:, 0]

    def one_ray(o, d):
        pvec = jnp.cross(d, e2)
        det = jnp.sum(e1 * pvec, -1)
        ok = jnp.abs(det) > 1e-9
        inv = 1.0 / jnp.where(ok, det, 1.0)
        tvec = o - v0
        u = jnp.sum(tvec * pvec, -1) * inv
        qvec = jnp.cross(tvec, e1)
        v = (qvec @ d) * inv
        t = jnp.sum(e2 * qvec, -1) * inv
        t = jnp.where(ok & (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-9), t, jnp.inf)
        return jnp.argmin(t), jnp.min(t)

    face, depth = jax.vmap(one_ray)(origins, directions)
    normal = jnp.cross(e1, e2)
    normal = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
    missed = jnp.isinf(depth)
    return jnp.where(missed, -1, face).astype(jnp.int32), depth, jnp.where(missed, 0.0, jnp.abs(normal[face] @ light))


try:
    import torch
except ImportError:
    pass


def torch_main(vertices, faces, origins, directions, light):
    tri = vertices[faces.long()]
    v0, e1, e2 = tri[:, 0], tri[:, 1] - tri[:, 0], tri[:, 2] - tri[:, 0]
    d = directions[:, None]
    pvec = torch.linalg.cross(d, e2[None])
    det = (e1 * pvec).sum(-1)
    ok = det.abs() > 1e-9
    inv = 1.0 / torch.where(ok, det, 1.0)
    tvec = origins[:, None] - v0
    u = (tvec * pvec).sum(-1) * inv
    qvec = torch.linalg.cross(tvec, e1[None])
    v = (d * qvec).sum(-1) * inv
    t = (e2 * qvec).sum(-1) * inv
    t = torch.where(ok & (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-9), t, torch.inf)
    depth, face = t.min(dim=1)
    normal = torch.linalg.cross(e1, e2)
    normal = normal / torch.linalg.vector_norm(normal, dim=1, keepdim=True)
    missed = torch.isinf(depth)
    shade = (normal[face] @ light).abs()
    return torch.where(missed, -1, face).to(torch.int32), depth, torch.where(missed, 0.0, shade)


def numba_main(vertices, faces, origins, directions, light):
    rays, tris = len(origins), len(faces)
    v0 = np.empty((tris, 3))
    e1 = np.empty((tris, 3))
    e2 = np.empty((tris, 3))
    for f in range(tris):
        for c in range(3):
            v0[f, c] = vertices[faces[f, 0], c]
            e1[f, c] = vertices[faces[f, 1], c] - v0[f, c]
            e2[f, c] = vertices[faces[f, 2], c] - v0[f, c]
    face = np.full(rays, -1, np.int32)
    depth = np.full(rays, np.inf)
    shade = np.zeros(rays)
    for r in range(rays):
        ox, oy, oz = origins[r, 0], origins[r, 1], origins[r, 2]
        dx, dy, dz = directions[r, 0], directions[r, 1], directions[r, 2]
        for f in range(tris):
            ax, ay, az = e1[f, 0], e1[f, 1], e1[f, 2]
            bx, by, bz = e2[f, 0], e2[f, 1], e2[f, 2]
            px, py, pz = dy * bz - dz * by, dz * bx - dx * bz, dx * by - dy * bx
            det = ax * px + ay * py + az * pz
            if abs(det) <= 1e-9:
                continue
            inv = 1.0 / det
            tx, ty, tz = ox - v0[f, 0], oy - v0[f, 1], oz - v0[f, 2]
            u = (tx * px + ty * py + tz * pz) * inv
            if u < 0 or u > 1:
                continue
            qx, qy, qz = ty * az - tz * ay, tz * ax - tx * az, tx * ay - ty * ax
            v = (dx * qx + dy * qy + dz * qz) * inv
            if v < 0 or u + v > 1:
                continue
            t = (bx * qx + by * qy + bz * qz) * inv
            if t > 1e-9 and t < depth[r]:
                depth[r] = t
                face[r] = f
        f = face[r]
        if f >= 0:
            nx = e1[f, 1] * e2[f, 2] - e1[f, 2] * e2[f, 1]
            ny = e1[f, 2] * e2[f, 0] - e1[f, 0] * e2[f, 2]
            nz = e1[f, 0] * e2[f, 1] - e1[f, 1] * e2[f, 0]
            shade[r] = abs(nx * light[0] + ny * light[1] + nz * light[2]) / np.sqrt(nx * nx + ny * ny + nz * nz)
    return face, depth, shade
