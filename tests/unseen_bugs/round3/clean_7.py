"""A planetary system integrated by leapfrog in double precision, with its energy, angular momentum
and the number of close encounters."""
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

CONFIG = {"G": 39.47841760435743, "dt": 0.002, "steps": 200, "close": 0.8}


def accelerations(position, mass, G):
    offset = position[None] - position[:, None]
    square = (offset ** 2).sum(axis=-1)
    square = jnp.where(jnp.eye(len(mass), dtype=bool), 1.0, square)
    weight = jnp.where(jnp.eye(len(mass), dtype=bool), 0.0, square ** -1.5)
    return G * (weight[..., None] * offset * mass[None, :, None]).sum(axis=1)


def energy(position, velocity, mass, G):
    kinetic = 0.5 * (mass * (velocity ** 2).sum(axis=-1)).sum()
    i, j = jnp.triu_indices(len(mass), k=1)
    distance = jnp.sqrt(((position[i] - position[j]) ** 2).sum(axis=-1))
    return kinetic - G * (mass[i] * mass[j] / distance).sum()


def angular_momentum(position, velocity, mass):
    return (mass[:, None] * jnp.cross(position, velocity)).sum(axis=0)


def nearest(position):
    i, j = jnp.triu_indices(len(position), k=1)
    return jnp.sqrt(((position[i] - position[j]) ** 2).sum(axis=-1)).min()


def leapfrog(position, velocity, mass, config):
    dt, G = config["dt"], config["G"]

    def step(carry, _):
        position, velocity, acceleration, encounters = carry
        velocity = velocity + 0.5 * dt * acceleration
        position = position + dt * velocity
        acceleration = accelerations(position, mass, G)
        velocity = velocity + 0.5 * dt * acceleration
        encounters = encounters + (nearest(position) < config["close"]).astype(encounters.dtype)
        return (position, velocity, acceleration, encounters), energy(position, velocity, mass, G)

    start = (position, velocity, accelerations(position, mass, G), jnp.zeros((), jnp.int64))
    return jax.lax.scan(step, start, None, length=config["steps"])


def main(position, velocity, mass):
    (position, velocity, _, encounters), energies = leapfrog(position, velocity, mass, CONFIG)
    drift = jnp.abs(energies / energies[0] - 1).max()
    return position, angular_momentum(position, velocity, mass), drift, encounters


def inputs():
    position = jnp.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.6, 0.05]], jnp.float64)
    velocity = jnp.array([[0.0, 0, 0], [0, 6.2, 0], [-4.9, 0, 0.1]], jnp.float64)
    return position, velocity, jnp.array([1.0, 3e-6, 1e-3], jnp.float64)
