"""A small simulator of state vectors: operators give their matrices, controlled operators build
theirs from a target and a phase, and the device applies them to a state of its precision.

https://github.com/PennyLaneAI/pennylane/issues/6608
"""
import cmath

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def convert_like(value, like):
    if isinstance(value, jax.Array):
        return value
    return jnp.asarray(np.asarray(value))


def block_diag(a, b):
    top = jnp.concatenate([a, jnp.zeros((a.shape[0], b.shape[1]), a.dtype)], axis=1)
    bottom = jnp.concatenate([jnp.zeros((b.shape[0], a.shape[1]), b.dtype), b], axis=1)
    return jnp.concatenate([top, bottom], axis=0)


class Operator:
    global_phase = None

    def __init__(self, *params, wires):
        self.params, self.wires = params, tuple(wires)


class RZ(Operator):
    def matrix(self):
        half = 0.5j * self.params[0]
        return jnp.diag(jnp.stack([jnp.exp(-half), jnp.exp(half)]))


class RY(Operator):
    def matrix(self):
        c, s = jnp.cos(self.params[0] / 2), jnp.sin(self.params[0] / 2)
        return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])]).astype(jnp.complex64)


class Rot(Operator):
    def matrix(self):
        phi, theta, omega = self.params
        w = self.wires
        return RZ(omega, wires=w).matrix() @ RY(theta, wires=w).matrix() @ RZ(phi, wires=w).matrix()


class SX(Operator):
    global_phase = cmath.exp(0.25j * cmath.pi)

    def matrix(self):
        return jnp.array([[1, -1j], [-1j, 1]], jnp.complex64) / jnp.sqrt(jnp.float32(2))


class Controlled(Operator):
    def __init__(self, base, control):
        super().__init__(*base.params, wires=tuple(control) + base.wires)
        self.base, self.control = base, tuple(control)
        self.global_phase = None

    def matrix(self):
        target = self.base.matrix()
        if self.base.global_phase is not None:
            target = target * convert_like(self.base.global_phase, target)
        size = 2 ** len(self.wires) - target.shape[0]
        return block_diag(jnp.eye(size, dtype=target.dtype), target)


class DefaultQubit:
    def __init__(self, wires, c_dtype=jnp.complex64):
        self.wires, self.c_dtype = wires, c_dtype

    def apply(self, state, op):
        k = len(op.wires)
        matrix = op.matrix().reshape((2,) * 2 * k)
        state = jnp.tensordot(matrix, state, axes=(tuple(range(k, 2 * k)), op.wires))
        return jnp.moveaxis(state, tuple(range(k)), op.wires)

    def execute(self, tape, measured):
        state = jnp.zeros((2,) * self.wires, self.c_dtype).at[(0,) * self.wires].set(1)
        for op in tape:
            state = self.apply(state, op)
        probability = jnp.abs(state) ** 2
        others = tuple(w for w in range(self.wires) if w != measured)
        marginal = probability.sum(axis=others)
        return state.ravel(), marginal[0] - marginal[1]


def main(phi, theta, omega):
    tape = [RY(theta, wires=[0]), RY(phi, wires=[1]),
            Controlled(Controlled(Rot(phi, theta, omega, wires=[2]), control=[1]), control=[0]),
            Controlled(SX(wires=[2]), control=[0]),
            RZ(omega, wires=[2])]
    return DefaultQubit(wires=3).execute(tape, measured=2)


def inputs():
    return tuple(jnp.array(v, jnp.float32) for v in (1.2, 0.7, -0.4))


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
