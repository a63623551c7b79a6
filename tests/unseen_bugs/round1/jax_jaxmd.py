"""Minimises the energy of a few particles in a periodic box with the FIRE method, as a
scan over steps; returns the positions and the energy on the way.

https://github.com/jax-md/jax-md/issues/99
"""
from collections import namedtuple

import jax
import jax.numpy as np
from jax import lax

f16 = np.float16
f32 = np.float32

FireDescentState = namedtuple(
    "FireDescentState", ["position", "velocity", "force", "dt", "alpha", "n_pos"])


def static_cast(*xs):
    return (np.array(x, f16) for x in xs)


def periodic(side):
    def displacement(Ra, Rb):
        return np.mod(Ra - Rb + side * f32(0.5), side) - side * f32(0.5)

    def shift(R, dR):
        return np.mod(R + dR, side)

    return displacement, shift


def soft_sphere_energy(displacement, sigma=1.0, epsilon=1.0):
    def energy(R):
        dR = jax.vmap(jax.vmap(displacement, (None, 0)), (0, None))(R, R)
        dist2 = np.sum(dR ** 2, axis=-1) + np.eye(R.shape[0], dtype=R.dtype) * 100
        overlap = np.maximum(1 - np.sqrt(dist2) / sigma, 0)
        return epsilon * np.sum(overlap ** 2) / 4
    return energy


def fire_descent(energy, shift_fn, dt_start=0.1, dt_max=0.4, n_min=5, f_inc=1.1,
                 f_dec=0.5, alpha_start=0.1, f_alpha=0.99):
    dt_start, dt_max, n_min, f_inc, f_dec, alpha_start, f_alpha = static_cast(
        dt_start, dt_max, n_min, f_inc, f_dec, alpha_start, f_alpha)
    force = jax.grad(lambda R: -energy(R))

    def init_fun(R):
        V = np.zeros_like(R)
        n_pos = np.zeros((), np.int32)
        return FireDescentState(R, V, force(R), dt_start, alpha_start, n_pos)

    def apply_fun(state):
        R, V, F_old, dt, alpha, n_pos = state
        R = shift_fn(R, dt * V + dt ** f16(2) * F_old)
        F = force(R)
        V = V + dt * f16(0.5) * (F_old + F)
        F_norm = np.sqrt(np.sum(F ** f16(2)) + f32(1e-6))
        V_norm = np.sqrt(np.sum(V ** f16(2)))
        P = np.dot(np.reshape(F, (-1,)), np.reshape(V, (-1,)))
        V = V + alpha * (F * V_norm / F_norm - V)
        n_pos = np.where(P >= 0, n_pos + 1.0, 0)
        dt_choice = np.array([dt * f_inc, dt_max])
        dt = np.where(P > 0, np.where(n_pos > n_min, np.min(dt_choice), dt), dt)
        dt = np.where(P < 0, dt * f_dec, dt)
        alpha = np.where(P > 0, np.where(n_pos > n_min, alpha * f_alpha, alpha), alpha)
        alpha = np.where(P < 0, alpha_start, alpha)
        V = (P < 0) * np.zeros_like(V) + (P >= 0) * V
        return FireDescentState(R, V, F, dt, alpha, n_pos)

    return init_fun, apply_fun


def main(R):
    displacement, shift = periodic(f32(3.0))
    energy = soft_sphere_energy(displacement)
    init, apply = fire_descent(energy, shift)

    def step(state, _):
        state = apply(state)
        return state, energy(state.position)

    state, energies = lax.scan(step, init(R), None, length=20)
    return state.position, energies


def inputs():
    return (jax.random.uniform(jax.random.key(0), (10, 2), f32) * 3,)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
