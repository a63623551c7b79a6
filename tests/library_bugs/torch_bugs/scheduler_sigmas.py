"""Latents become float64: the sigmas of the scheduler are np.linspace's.

https://github.com/sgl-project/sglang/pull/29011
"""

import numpy as np
import torch


class EulerScheduler:
    def __init__(self, steps, shift=3.0):
        sigmas = np.linspace(1.0, 1.0 / steps, steps)
        sigmas = shift * sigmas / (1 + (shift - 1) * sigmas)
        self.sigmas = torch.cat([torch.from_numpy(sigmas), torch.zeros(1)])  # born

    def step(self, velocity, index, latents):
        size = self.sigmas[index + 1] - self.sigmas[index]
        return latents + size.view(-1, 1, 1) * velocity  # guilty


class Denoiser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, latents):
        return -self.gain * latents


def program(latents):
    scheduler, model = EulerScheduler(steps=4), Denoiser()
    index = torch.zeros(len(latents), dtype=torch.long)
    with torch.no_grad():
        for _ in range(2):
            latents = scheduler.step(model(latents), index, latents)
            index = index + 1
    return latents


def inputs():
    return (torch.ones(2, 3, 4),)


def shows_fault(result):
    return result.dtype == torch.float64
