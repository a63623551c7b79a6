"""Leapfrog integration of a small planetary system.

Starts a star with five planets on nearly circular orbits, integrates them with the kick-drift-kick
scheme, follows energy and angular momentum, fits the orbital periods from the azimuth of each planet
and writes the trajectory of the outermost one to the current directory.
"""
# outputs: 16
# (2 returned, 13 numbers printed, 1 arrays written)
import numpy as np

G = 4.0 * np.pi ** 2          # AU^3 / (Msun yr^2)
NAMES = ["star", "alpha", "beta", "gamma", "delta", "epsilon"]


def initial_state(rng):
    mass = np.array([1.0, 1e-6, 3e-6, 1e-5, 9.5e-4, 2.8e-4])
    radius = np.array([0.0, 0.4, 0.75, 1.1, 2.6, 4.3])
    phase = rng.uniform(0, 2 * np.pi, size=mass.size)
    pos = np.zeros((mass.size, 3))
    vel = np.zeros_like(pos)
    pos[:, 0] = radius * np.cos(phase)
    pos[:, 1] = radius * np.sin(phase)
    speed = np.zeros_like(radius)
    speed[1:] = np.sqrt(G * mass[0] / radius[1:])
    vel[:, 0] = -speed * np.sin(phase)
    vel[:, 1] = speed * np.cos(phase)
    vel[1:, 2] = 0.01 * rng.standard_normal(mass.size - 1)
    # put the centre of mass at rest in the origin
    pos -= np.average(pos, axis=0, weights=mass)
    vel -= np.average(vel, axis=0, weights=mass)
    return mass, pos, vel


def acceleration(pos, mass, soft=1e-4):
    delta = pos[None, :, :] - pos[:, None, :]
    r2 = np.einsum("ijk,ijk->ij", delta, delta) + soft ** 2
    inv_r3 = r2 ** -1.5
    np.fill_diagonal(inv_r3, 0.0)
    return G * np.einsum("ij,ijk,j->ik", inv_r3, delta, mass)


def energy(pos, vel, mass):
    kinetic = 0.5 * np.sum(mass * np.einsum("ij,ij->i", vel, vel))
    i, j = np.triu_indices(len(mass), k=1)
    dist = np.linalg.norm(pos[i] - pos[j], axis=1)
    potential = -G * np.sum(mass[i] * mass[j] / dist)
    return kinetic + potential


def angular_momentum(pos, vel, mass):
    return (mass[:, None] * np.cross(pos, vel)).sum(axis=0)


def integrate(mass, pos, vel, dt, n_steps, every):
    pos, vel = pos.copy(), vel.copy()
    n_out = n_steps // every + 1
    track = np.empty((n_out, *pos.shape))
    total = np.empty(n_out)
    track[0] = pos
    total[0] = energy(pos, vel, mass)
    acc = acceleration(pos, mass)
    for step in range(1, n_steps + 1):
        vel += 0.5 * dt * acc
        pos += dt * vel
        acc = acceleration(pos, mass)
        vel += 0.5 * dt * acc
        if step % every == 0:
            track[step // every] = pos
            total[step // every] = energy(pos, vel, mass)
    return track, total, vel


def periods(track, times):
    """Orbital periods in years from a straight line through the unwrapped azimuth."""
    rel = track[:, 1:] - track[:, :1]
    azimuth = np.unwrap(np.arctan2(rel[..., 1], rel[..., 0]), axis=0)
    slope = np.polyfit(times, azimuth, 1)[0]
    return 2 * np.pi / slope


def main():
    rng = np.random.default_rng(1687)
    mass, pos, vel = initial_state(rng)
    dt, n_steps, every = 0.004, 1500, 5
    track, total, vel_end = integrate(mass, pos, vel, dt, n_steps, every)
    times = np.arange(len(track)) * dt * every

    drift = np.abs(total / total[0] - 1.0)
    l_start = angular_momentum(pos, vel, mass)
    l_end = angular_momentum(track[-1], vel_end, mass)
    found = periods(track, times)

    print("relative energy error: max", drift.max(), "final", drift[-1])
    print("change of angular momentum", np.linalg.norm(l_end - l_start))
    for name, p, m in zip(NAMES[1:], found, mass[1:]):
        print(f"{name:>10s}  period {p:8.5f} yr  mass {m:.2e}")

    distance = np.linalg.norm(track[:, 1:] - track[:, :1], axis=2)
    eccentricity = (distance.max(axis=0) - distance.min(axis=0)) / (distance.max(axis=0) + distance.min(axis=0))
    np.savetxt("epsilon.txt", np.column_stack([times, track[:, -1]]), fmt="%.8f")
    return found, eccentricity


if __name__ == "__main__":
    main()
