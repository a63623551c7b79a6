"""Lennard-Jones fluid in a periodic box: velocity Verlet with cut-off and minimum image.

Application: a small molecular-dynamics run (argon).  All pairs by broadcasting, forces and energy within the cut-off.
Public code with such a loop: https://github.com/pmocz/nbody-python, jax-md (https://github.com/jax-md/jax-md), the
NumPy MD of many courses.
"""
import numpy as np

TOLERANCE = 1e-8


def forces(pos, box, rc):
    d = pos[:, None, :] - pos[None, :, :]
    d -= box * np.round(d / box)
    r2 = np.sum(d * d, axis=-1)
    np.fill_diagonal(r2, np.inf)
    inside = r2 < rc * rc
    inv6 = np.where(inside, 1.0 / r2 ** 3, 0.0)
    shift = 4 * (rc ** -12 - rc ** -6)
    energy = 0.5 * np.sum(np.where(inside, 4 * inv6 * (inv6 - 1) - shift, 0.0))
    magnitude = 24 * inv6 * (2 * inv6 - 1) / r2
    return np.sum(magnitude[..., None] * d, axis=1), energy


def main(pos, vel, box, dt, rc=2.5, steps=4):
    f, _ = forces(pos, box, rc)
    trace = np.empty((steps, 2))
    for i in range(steps):
        vel = vel + 0.5 * dt * f
        pos = (pos + dt * vel) % box
        f, potential = forces(pos, box, rc)
        vel = vel + 0.5 * dt * f
        trace[i] = potential, 0.5 * np.sum(vel ** 2)
    return pos, vel, trace


def inputs(rng):
    side = 6
    box = side * 1.1
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    pos = (grid + 0.5) * 1.1 + 0.05 * rng.standard_normal((side ** 3, 3))
    vel = rng.standard_normal((side ** 3, 3))
    return pos % box, vel - vel.mean(axis=0), box, 0.002


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(pos, vel, box, dt, rc=2.5, steps=4):
    eye = jnp.eye(pos.shape[0], dtype=bool)

    def forces(pos):
        d = pos[:, None] - pos[None]
        d = d - box * jnp.round(d / box)
        r2 = jnp.where(eye, jnp.inf, jnp.sum(d * d, -1))
        inside = r2 < rc * rc
        inv6 = jnp.where(inside, 1.0 / r2 ** 3, 0.0)
        shift = 4 * (rc ** -12 - rc ** -6)
        energy = 0.5 * jnp.sum(jnp.where(inside, 4 * inv6 * (inv6 - 1) - shift, 0.0))
        return jnp.sum((24 * inv6 * (2 * inv6 - 1) / r2)[..., None] * d, axis=1), energy

    def step(state, _):
        pos, vel, f = state
        vel = vel + 0.5 * dt * f
        pos = (pos + dt * vel) % box
        f, potential = forces(pos)
        vel = vel + 0.5 * dt * f
        return (pos, vel, f), jnp.stack([potential, 0.5 * jnp.sum(vel ** 2)])

    (pos, vel, _), trace = lax.scan(step, (pos, vel, forces(pos)[0]), None, length=steps)
    return pos, vel, trace


try:
    import torch
except ImportError:
    pass


def _torch_forces(pos, box, rc):
    d = pos[:, None] - pos[None]
    d = d - box * torch.round(d / box)
    r2 = (d * d).sum(-1)
    r2 = r2.masked_fill(torch.eye(pos.shape[0], dtype=torch.bool), torch.inf)
    inside = r2 < rc * rc
    inv6 = torch.where(inside, 1.0 / r2 ** 3, 0.0)
    shift = 4 * (rc ** -12 - rc ** -6)
    energy = 0.5 * torch.where(inside, 4 * inv6 * (inv6 - 1) - shift, 0.0).sum()
    return ((24 * inv6 * (2 * inv6 - 1) / r2)[..., None] * d).sum(1), energy


def torch_main(pos, vel, box, dt, rc=2.5, steps=4):
    f, _ = _torch_forces(pos, box, rc)
    trace = []
    for _ in range(steps):
        vel = vel + 0.5 * dt * f
        pos = (pos + dt * vel) % box
        f, potential = _torch_forces(pos, box, rc)
        vel = vel + 0.5 * dt * f
        trace.append(torch.stack([potential, 0.5 * (vel ** 2).sum()]))
    return pos, vel, torch.stack(trace)


def numba_main(pos, vel, box, dt, rc=2.5, steps=4):
    n = len(pos)
    pos = pos.copy()
    vel = vel.copy()
    f = np.zeros((n, 3))
    trace = np.empty((steps, 2))
    rc2 = rc * rc
    shift = 4 * (1 / rc2 ** 6 - 1 / rc2 ** 3)
    for step in range(steps + 1):
        if step > 0:
            for i in range(n):
                for c in range(3):
                    vel[i, c] += 0.5 * dt * f[i, c]
                    pos[i, c] = (pos[i, c] + dt * vel[i, c]) % box
        f[:] = 0
        potential = 0.0
        for i in range(n):
            for j in range(i + 1, n):
                dx = pos[i, 0] - pos[j, 0]
                dy = pos[i, 1] - pos[j, 1]
                dz = pos[i, 2] - pos[j, 2]
                dx -= box * np.rint(dx / box)
                dy -= box * np.rint(dy / box)
                dz -= box * np.rint(dz / box)
                r2 = dx * dx + dy * dy + dz * dz
                if r2 < rc2:
                    inv6 = 1.0 / (r2 * r2 * r2)
                    potential += 4 * inv6 * (inv6 - 1) - shift
                    mag = 24 * inv6 * (2 * inv6 - 1) / r2
                    f[i, 0] += mag * dx
                    f[i, 1] += mag * dy
                    f[i, 2] += mag * dz
                    f[j, 0] -= mag * dx
                    f[j, 1] -= mag * dy
                    f[j, 2] -= mag * dz
        if step > 0:
            kinetic = 0.0
            for i in range(n):
                for c in range(3):
                    vel[i, c] += 0.5 * dt * f[i, c]
                    kinetic += vel[i, c] ** 2
            trace[step - 1, 0] = potential
            trace[step - 1, 1] = 0.5 * kinetic
    return pos, vel, trace
