"""Rigid-body physics with einsum: inertia tensor, angular momentum, principal axes."""
import numpy as np


def inertia_tensor(mass, r):
    r2 = np.einsum("ni,ni->n", r, r)
    trace_part = np.einsum("n,n->", mass, r2) * np.eye(3)
    outer_part = np.einsum("n,ni,nj->ij", mass, r, r)
    return trace_part - outer_part


def main(mass, pos, vel):
    total = mass.sum()
    com = np.einsum("n,ni->i", mass, pos) / total
    vcm = np.einsum("n,ni->i", mass, vel) / total
    r, v = pos - com, vel - vcm
    I = inertia_tensor(mass, r)
    L = np.einsum("n,ni->i", mass, np.cross(r, v))
    omega = np.linalg.solve(I, L)
    e_rot = 0.5 * np.einsum("i,ij,j->", omega, I, omega)
    moments = np.linalg.eigvalsh(I)
    return I, L, omega, e_rot, moments


def inputs():
    rng = np.random.default_rng(15)
    mass = rng.uniform(0.5, 2.0, size=12)
    pos = rng.normal(size=(12, 3))
    spin = np.array([0.0, 0.2, 1.0])
    return mass, pos, np.cross(spin, pos) + np.array([1.0, 0.0, 0.0])
