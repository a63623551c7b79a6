"""A density matrix goes through gates and noise channels; a channel is the sum over its Kraus
operators, which are scanned.

https://github.com/Quantinuum/qujax/pull/42
"""
import jax
import jax.numpy as jnp
from jax.lax import scan

jax.config.update("jax_enable_x64", True)

I = jnp.eye(2)
X = jnp.array([[0.0, 1.0], [1.0, 0.0]])
Z = jnp.array([[1.0, 0.0], [0.0, -1.0]])
Y = jnp.array([[0.0, -1.0j], [1.0j, 0.0]])
CX = jnp.eye(4)[jnp.array([0, 1, 3, 2])].reshape(2, 2, 2, 2)


def rotation(pauli, angle):
    return jnp.cos(angle / 2) * I - 1.0j * jnp.sin(angle / 2) * pauli


def apply_gate(statetensor, gate, qubit_inds):
    k = len(qubit_inds)
    gate = gate.reshape((2,) * 2 * k)
    out = jnp.tensordot(gate, statetensor, axes=(tuple(range(k, 2 * k)), tuple(qubit_inds)))
    return jnp.moveaxis(out, tuple(range(k)), tuple(qubit_inds))


def _kraus_single(densitytensor, array, qubit_inds):
    n_qubits = densitytensor.ndim // 2
    density = apply_gate(densitytensor, array, qubit_inds)
    return apply_gate(density, array.conj(), [q + n_qubits for q in qubit_inds])


def kraus(densitytensor, arrays, qubit_inds):
    arrays = jnp.asarray(arrays)
    if arrays.ndim % 2 == 0:
        arrays = arrays[jnp.newaxis]
    new_densitytensor, _ = scan(
        lambda dt, arr: (dt + _kraus_single(densitytensor, arr, qubit_inds), None),
        init=jnp.zeros_like(densitytensor, dtype="complex64"), xs=arrays)
    return new_densitytensor


def depolarise(probability):
    weights = jnp.sqrt(jnp.array([1 - 0.75 * probability] + [probability / 4] * 3))
    paulis = jnp.stack([I.astype(complex), X.astype(complex), Y, Z.astype(complex)])
    return weights[:, None, None] * paulis


class ParameterisedChannel:
    def __init__(self, n_qubits, depth, noise):
        self.n_qubits, self.depth, self.noise = n_qubits, depth, noise

    def __call__(self, params, densitytensor):
        channel = depolarise(self.noise)
        for angles in params:
            for q in range(self.n_qubits):
                densitytensor = kraus(densitytensor, rotation(Y, angles[q]), [q])
            for q in range(self.n_qubits - 1):
                densitytensor = kraus(densitytensor, CX, [q, q + 1])
            for q in range(self.n_qubits):
                densitytensor = kraus(densitytensor, channel, [q])
        return densitytensor


def expectation(densitytensor, observable, n_qubits):
    dim = 2 ** n_qubits
    matrix = apply_gate(densitytensor, observable, [0]).reshape(dim, dim)
    return jnp.real(jnp.trace(matrix))


def main(params):
    depth, n_qubits = params.shape
    zero = jnp.zeros((2,) * 2 * n_qubits, dtype=complex).at[(0,) * 2 * n_qubits].set(1.0)
    channel = ParameterisedChannel(n_qubits, depth, noise=0.08)

    def energy(p):
        return expectation(channel(p, zero), Z, n_qubits)

    return jax.value_and_grad(energy)(params)


def inputs():
    return (jax.random.uniform(jax.random.PRNGKey(1), (2, 3), minval=-1.5, maxval=1.5),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
