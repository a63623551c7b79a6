"""Observations declared as float32 are float64: a list of Python floats is concatenated.

https://github.com/MyoHub/myosuite/pull/205
"""

import numpy as np


class Simulation:
    def __init__(self, joints):
        self.positions = np.zeros(joints, np.float32)
        self.velocities = np.linspace(-1, 1, joints, dtype=np.float32)
        self.time = 0.0

    def step(self, action, dt=0.02):
        self.velocities += np.float32(dt) * action
        self.positions += np.float32(dt) * self.velocities
        self.time += dt


class Environment:
    def __init__(self, joints):
        self.simulation = Simulation(joints)

    def observation(self):
        phase = np.array([np.sin(self.simulation.time), np.cos(self.simulation.time)])  # born
        parts = [self.simulation.positions, self.simulation.velocities, phase]
        return np.concatenate(parts)  # guilty


def program(actions):
    environment = Environment(actions.shape[1])
    frames = []
    for action in actions:
        environment.simulation.step(action)
        frames.append(environment.observation())
    return np.stack(frames)


def inputs(folder):
    return (np.random.default_rng(0).random((5, 4), dtype=np.float32),)


def shows_fault(result):
    return result.dtype == np.float64
