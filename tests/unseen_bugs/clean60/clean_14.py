"""Particles in a structured array: centre of mass, kinetic energy, per-species mass."""
import numpy as np

PARTICLE = np.dtype([("species", "i4"), ("mass", "f8"),
                     ("pos", "f8", (3,)), ("vel", "f8", (3,))])


def centre_of_mass(p):
    return np.average(p["pos"], axis=0, weights=p["mass"])


def kinetic(p):
    return 0.5 * p["mass"] * np.sum(p["vel"] ** 2, axis=1)


def drift(p, dt):
    out = p.copy()
    out["pos"] += dt * p["vel"]
    return out


def main(particles):
    com0 = centre_of_mass(particles)
    moved = drift(particles, 0.01)
    com1 = centre_of_mass(moved)
    ke = kinetic(moved)
    heavy_first = np.argsort(-moved["mass"], kind="stable")
    per_species = np.bincount(moved["species"], weights=moved["mass"], minlength=3)
    return com1 - com0, ke[heavy_first], ke.sum(), per_species


def inputs():
    rng = np.random.default_rng(10)
    p = np.zeros(10, dtype=PARTICLE)
    p["species"] = rng.integers(0, 3, size=10)
    p["mass"] = rng.uniform(1.0, 5.0, size=10)
    p["pos"] = rng.normal(size=(10, 3))
    p["vel"] = rng.normal(size=(10, 3))
    return (p,)
