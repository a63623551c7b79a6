"""State vectors of a quantum register in complex64."""

import cmath
import math

import numpy as np


def ground_state(qubits):
    state = np.zeros(2**qubits, np.complex64)
    state[0] = 1
    return state


def global_phase(state, turns):
    return cmath.exp(2j * math.pi * turns) * state


def probabilities(state):
    return (state * state.conj()).real


def interfered(first, second, turns):
    total = first + global_phase(second, turns)
    return probabilities(total) / 2
