"""Steps of ordinary differential equations."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


def lorenz(state, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = state
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


@kernel(lambda rng: (np.array([1.0, 1.0, 1.05]), 0.01, 8))
def rk4_lorenz(state, h, steps):
    trajectory = np.empty((steps + 1, 3))
    trajectory[0] = state
    for n in range(steps):
        y = trajectory[n]
        k1 = lorenz(y)
        k2 = lorenz(y + h / 2 * k1)
        k3 = lorenz(y + h / 2 * k2)
        k4 = lorenz(y + h * k3)
        trajectory[n + 1] = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return trajectory


@kernel(lambda rng: (rng.standard_normal(24), np.zeros(24), 0.05, 12), writes=True)
def spring_chain(x, v, dt, steps):
    """Velocity Verlet of masses between two walls; the energy after each step is returned."""

    def force(x):
        f = -2 * x
        f[1:] += x[:-1]
        f[:-1] += x[1:]
        return f

    energy = np.zeros(steps)
    f = force(x)
    for n in range(steps):
        v += 0.5 * dt * f
        x += dt * v
        f = force(x)
        v += 0.5 * dt * f
        energy[n] = 0.5 * (v @ v) + 0.5 * (np.diff(x, prepend=0.0, append=0.0) ** 2).sum()
    return energy


@kernel(lambda rng: (40.0, 9.0, 60), scalars=True)
def predator_prey(prey, predators, steps, dt=0.02):
    x, y = np.zeros(steps), np.zeros(steps)
    x[0], y[0] = prey, predators
    for i in range(steps - 1):
        x[i + 1] = x[i] + dt * (1.1 * x[i] - 0.4 * x[i] * y[i])
        y[i + 1] = y[i] + dt * (0.1 * x[i] * y[i] - 0.4 * y[i])
    return x, y
