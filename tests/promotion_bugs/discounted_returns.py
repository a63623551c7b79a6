"""Discounted returns are whole numbers: zeros_like of integer rewards.

https://github.com/numpy/numpy/issues/16578
"""

import numpy as np


def discounted(rewards, gamma):
    returns = np.zeros_like(rewards)  # born
    running = 0.0
    for t in reversed(range(len(rewards))):
        running = rewards[t] + gamma * running
        returns[t] = running  # guilty
    return returns


def advantages(returns, baseline):
    spread = returns.std() + 1e-8
    return (returns - baseline) / spread


class Episode:
    def __init__(self, rewards, gamma=0.8):
        self.rewards = np.array(rewards)
        self.gamma = gamma

    def targets(self):
        returns = discounted(self.rewards, self.gamma)
        return advantages(returns, baseline=returns.mean())


def program(rewards):
    return Episode(rewards).targets()


def inputs(folder):
    return ([0, 0, 1, 1, 0, 1],)


def shows_fault(result):
    running, returns = 0.0, []
    for reward in reversed(inputs(None)[0]):
        returns.insert(0, running := reward + 0.8 * running)
    wanted = np.array(returns)
    return not np.allclose(result, (wanted - wanted.mean()) / wanted.std())
