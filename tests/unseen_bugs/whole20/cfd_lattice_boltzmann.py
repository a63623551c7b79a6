"""D2Q9 lattice Boltzmann flow around a cylinder.

Application: teaching-size CFD (vortex street).  Streaming by np.roll, bounce-back on the obstacle, BGK collision;
returns the populations and the vorticity.
Public code with such a loop: https://github.com/pmocz/latticeboltzmann-python, pylbm.
"""
import numpy as np

TOLERANCE = 1e-9

CX = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
CY = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
W = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])


def stream(f):
    out = np.empty_like(f)
    for i in range(9):
        out[i] = np.roll(f[i], (CY[i], CX[i]), axis=(0, 1))
    return out


def equilibrium(rho, ux, uy):
    feq = np.empty((9,) + rho.shape)
    usq = 1.5 * (ux ** 2 + uy ** 2)
    for i in range(9):
        cu = 3 * (CX[i] * ux + CY[i] * uy)
        feq[i] = rho * W[i] * (1 + cu + 0.5 * cu ** 2 - usq)
    return feq


def main(f, obstacle, tau, steps=8):
    for _ in range(steps):
        f = stream(f)
        bounced = f[[0, 5, 6, 7, 8, 1, 2, 3, 4]][:, obstacle]
        rho = f.sum(axis=0)
        ux = np.tensordot(CX, f, axes=1) / rho
        uy = np.tensordot(CY, f, axes=1) / rho
        f = f - (f - equilibrium(rho, ux, uy)) / tau
        f[:, obstacle] = bounced
        ux[obstacle] = 0
        uy[obstacle] = 0
    vorticity = (np.roll(uy, -1, axis=1) - np.roll(uy, 1, axis=1)) - (np.roll(ux, -1, axis=0) - np.roll(ux, 1, axis=0))
    return f, vorticity


def inputs(rng):
    ny, nx = 80, 200
    yy, xx = np.mgrid[0:ny, 0:nx]
    f = 1 + 0.01 * rng.standard_normal((9, ny, nx))
    f[3] += 2 * (1 + 0.2 * np.cos(2 * np.pi * xx / nx * 4))
    f *= 100 / f.sum(axis=0)
    return f, (xx - nx / 4) ** 2 + (yy - ny / 2) ** 2 < (ny / 6) ** 2, 0.6


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(f, obstacle, tau, steps=8):
    cx, cy, w = (jnp.asarray(v, jnp.float64) for v in (CX, CY, W))

    def step(_, state):
        f, _, _ = state
        f = jnp.stack([jnp.roll(f[i], (int(CY[i]), int(CX[i])), axis=(0, 1)) for i in range(9)])
        bounced = f[jnp.array([0, 5, 6, 7, 8, 1, 2, 3, 4])]
        rho = f.sum(0)
        ux = jnp.tensordot(cx, f, axes=1) / rho
        uy = jnp.tensordot(cy, f, axes=1) / rho
        cu = 3 * (cx[:, None, None] * ux + cy[:, None, None] * uy)
        feq = rho * w[:, None, None] * (1 + cu + 0.5 * cu ** 2 - 1.5 * (ux ** 2 + uy ** 2))
        f = jnp.where(obstacle, bounced, f - (f - feq) / tau)
        return f, jnp.where(obstacle, 0, ux), jnp.where(obstacle, 0, uy)

    f, ux, uy = lax.fori_loop(0, steps, step, (f, jnp.zeros(f.shape[1:]), jnp.zeros(f.shape[1:])))
    return f, (jnp.roll(uy, -1, 1) - jnp.roll(uy, 1, 1)) - (jnp.roll(ux, -1, 0) - jnp.roll(ux, 1, 0))


try:
    import torch
except ImportError:
    pass


def _torch_lbm_step(f, obstacle, tau):
    f = torch.stack([torch.roll(f[i], (int(CY[i]), int(CX[i])), (0, 1)) for i in range(9)])
    bounced = torch.cat([f[:1], f[5:], f[1:5]])
    rho = f.sum(0)
    ux = (f[2] + f[3] + f[4] - f[6] - f[7] - f[8]) / rho
    uy = (f[1] + f[2] + f[8] - f[4] - f[5] - f[6]) / rho
    usq = 1.5 * (ux ** 2 + uy ** 2)
    feq = []
    for i in range(9):
        cu = 3 * (int(CX[i]) * ux + int(CY[i]) * uy)
        feq.append(rho * float(W[i]) * (1 + cu + 0.5 * cu ** 2 - usq))
    f = torch.where(obstacle, bounced, f - (f - torch.stack(feq)) / tau)
    return f, torch.where(obstacle, 0.0, ux), torch.where(obstacle, 0.0, uy)


def torch_main(f, obstacle, tau, steps=8):
    for _ in range(steps):
        torch._dynamo.graph_break()  # compile the step, keep the loop in Python
        f, ux, uy = _torch_lbm_step(f, obstacle, tau)
    curl = (torch.roll(uy, -1, 1) - torch.roll(uy, 1, 1)) - (torch.roll(ux, -1, 0) - torch.roll(ux, 1, 0))
    return f, curl


def numba_main(f, obstacle, tau, steps=8):
    _, ny, nx = f.shape
    cur = f.copy()
    new = np.empty_like(f)
    ux = np.zeros((ny, nx))
    uy = np.zeros((ny, nx))
    g = np.empty(9)
    for _ in range(steps):
        for y in range(ny):
            for x in range(nx):
                rho = vx = vy = 0.0
                for i in range(9):
                    v = cur[i, (y - CY[i]) % ny, (x - CX[i]) % nx]
                    g[i] = v
                    rho += v
                    vx += CX[i] * v
                    vy += CY[i] * v
                if obstacle[y, x]:
                    ux[y, x] = 0.0
                    uy[y, x] = 0.0
                    new[0, y, x] = g[0]
                    for i in range(1, 9):
                        new[i, y, x] = g[i + 4 if i < 5 else i - 4]
                else:
                    vx /= rho
                    vy /= rho
                    ux[y, x] = vx
                    uy[y, x] = vy
                    usq = 1.5 * (vx * vx + vy * vy)
                    for i in range(9):
                        cu = 3 * (CX[i] * vx + CY[i] * vy)
                        feq = rho * W[i] * (1 + cu + 0.5 * cu * cu - usq)
                        new[i, y, x] = g[i] - (g[i] - feq) / tau
        cur, new = new, cur
    vort = np.empty((ny, nx))
    for y in range(ny):
        for x in range(nx):
            vort[y, x] = (uy[y, (x + 1) % nx] - uy[y, (x - 1) % nx]) - (ux[(y + 1) % ny, x] - ux[(y - 1) % ny, x])
    return cur, vort
