"""Bodies that attract or repel each other."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


def acceleration(pos, mass, G, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


@kernel(
    lambda rng: (
        20.0 * np.ones((9, 1)) / 9,
        rng.standard_normal((9, 3)),
        rng.standard_normal((9, 3)),
        4,
        0.01,
    ),
    writes=True,
    depends="shapes",
)
def leapfrog(mass, pos, vel, steps, dt):
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = acceleration(pos, mass, 1.0, 0.1)
    kinetic = np.empty(steps + 1)
    kinetic[0] = 0.5 * np.sum(mass * vel**2)
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos, mass, 1.0, 0.1)
        vel += acc * dt / 2.0
        kinetic[i + 1] = 0.5 * np.sum(mass * vel**2)
    return kinetic


@kernel(
    lambda rng: (rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), rng.random(6) + 0.5),
    writes=True,
)
def pairwise_steps(r, v, m, steps=3, dt=1e-2):
    n = len(m)
    for _ in range(steps):
        force = np.zeros_like(r)
        for i in range(n):
            for j in range(i + 1, n):
                d = r[j] - r[i]
                f = m[i] * m[j] * d / (d @ d + 1e-3) ** 1.5
                force[i] += f
                force[j] -= f
        v += dt * force / m[:, None]
        r += dt * v


@kernel(lambda rng: (rng.random((8, 3)), rng.choice([-1.0, 1.0], 8), 1.0), scalars=True)
def coulomb_periodic(position, charge, box):
    energy = 0.0
    n = position.shape[0]
    for i in range(n):
        for j in range(i):
            r2 = 0.0
            for k in range(3):
                d = position[i, k] - position[j, k]
                d -= box * np.round(d / box)
                r2 += d * d
            energy += charge[i] * charge[j] / np.sqrt(r2)
    return energy
