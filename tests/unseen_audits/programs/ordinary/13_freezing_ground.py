"""Crank-Nicolson solution of heat conduction in the ground with a seasonal surface temperature.

Conductivity depends on depth; the tridiagonal systems are solved with the Thomas algorithm, the result is
checked against np.linalg.solve and the analytic damped wave, and the frost depth through the year is found.
"""
# outputs: 28
# (2 returned, 24 numbers printed, 2 arrays written)
import numpy as np

YEAR = 365.0
DEPTH = 12.0


def grid(n):
    """Cells that widen with depth; returns faces and centres."""
    face = DEPTH * (np.linspace(0, 1, n + 1) ** 1.6)
    return face, 0.5 * (face[1:] + face[:-1])


def diffusivity(z):
    layers = np.array([0.0, 0.4, 1.5, 4.0, DEPTH])
    value = np.array([0.035, 0.05, 0.07, 0.09, 0.09])      # m2 / day
    return np.interp(z, layers, value)


def operator(face, centre):
    """Tridiagonal operator d/dz (k d/dz); Dirichlet above, no flux below."""
    width = np.diff(face)
    k = diffusivity(face)
    gap = np.diff(np.concatenate(([face[0]], centre)))
    conductance = k[:-1] / gap
    lower = conductance[1:] / width[1:]
    upper = conductance[1:] / width[:-1]
    diagonal = np.zeros(len(centre))
    diagonal[1:] -= lower
    diagonal[:-1] -= upper
    diagonal[0] -= conductance[0] / width[0]
    return lower, diagonal, upper, conductance[0] / width[0]


def thomas(lower, diagonal, upper, rhs):
    n = rhs.size
    c = np.empty(n - 1)
    d = np.empty(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = rhs[0] / diagonal[0]
    for i in range(1, n):
        denom = diagonal[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / denom
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / denom
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def surface(day):
    return 3.0 - 14.0 * np.cos(2 * np.pi * (day - 20.0) / YEAR)


def march(n_cells, dt, years):
    face, centre = grid(n_cells)
    lower, diag, upper, top = operator(face, centre)
    t = np.full(n_cells, 3.0)
    steps = int(round(years * YEAR / dt))
    days = np.arange(steps + 1) * dt
    keep = np.zeros((steps + 1, n_cells), dtype=np.float32)
    keep[0] = t
    h = 0.5 * dt
    for s in range(steps):
        rhs = t + h * diag * t
        rhs[1:] += h * lower * t[:-1]
        rhs[:-1] += h * upper * t[1:]
        rhs[0] += h * top * (surface(days[s]) + surface(days[s + 1]))
        t = thomas(-h * lower, 1 - h * diag, -h * upper, rhs)
        keep[s + 1] = t
    return days, face, centre, keep, t


def frost_depth(centre, profile):
    frozen = profile < 0
    if not frozen.any():
        return 0.0
    k = np.flatnonzero(frozen)[-1]
    if k == profile.size - 1:
        return centre[-1]
    a, b = profile[k], profile[k + 1]
    return centre[k] + (centre[k + 1] - centre[k]) * a / (a - b)


def main():
    days, face, centre, keep, final = march(24, 5.0, 3)
    # independent check of the last steady operator
    lower, diag, upper, top = operator(face, centre)
    full = np.diag(diag) + np.diag(lower, -1) + np.diag(upper, 1)
    rng = np.random.default_rng(1822)
    b = rng.standard_normal(len(centre))
    gap = np.abs(np.linalg.solve(np.eye(24) - full, b) - thomas(-lower, 1 - diag, -upper, b)).max()
    print("two solvers differ by less than a billionth:", bool(gap < 1e-9))

    last = keep[days > days[-1] - YEAR]
    amplitude = 0.5 * (last.max(axis=0) - last.min(axis=0))
    warmest = days[days > days[-1] - YEAR][last.argmax(axis=0)] % YEAR
    damping = -1.0 / np.polyfit(centre[6:16], np.log(amplitude[6:16]), 1)[0]
    theory = np.sqrt(diffusivity(centre[6:16]).mean() * YEAR / np.pi)
    print(f"damping depth {damping:.4f} m, expected about {theory:.4f} m")

    depth = np.array([frost_depth(centre, p) for p in keep])
    frozen_days = 5.0 * np.count_nonzero(depth[days > days[-1] - YEAR])
    print("deepest frost", depth.max().round(4), "days with frost in the last year", frozen_days)
    print("  depth   amplitude   warmest day")
    for k in range(0, 24, 4):
        print(f"{centre[k]:7.3f} {amplitude[k]:11.4f} {warmest[k]:13.0f}")
    heat = np.trapezoid(final, centre)
    print("mean ground temperature", round(heat / DEPTH, 5))
    np.savetxt("frost.txt", np.column_stack([days, depth]), fmt="%.4f")
    np.save("ground.npy", keep[::6])
    return amplitude, depth


if __name__ == "__main__":
    main()
