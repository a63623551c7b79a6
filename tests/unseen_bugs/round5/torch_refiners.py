"""Noise levels of a DPM solver, in the precision of the model that is to be sampled.

https://github.com/finegrain-ai/refiners/pull/448
"""
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class SolverParams:
    num_train_timesteps: int = 1000
    timesteps_offset: int = 0
    initial_diffusion_rate: float = 8.5e-4
    final_diffusion_rate: float = 1.2e-2


class Solver:
    def __init__(self, num_inference_steps, params=SolverParams(), device="cpu", dtype=torch.float32):
        self.num_inference_steps, self.params = num_inference_steps, params
        self.device, self.dtype = device, dtype
        self.scale_factors = self.sample_noise_schedule()
        self.cumulative_scale_factors = torch.sqrt(self.scale_factors.cumprod(dim=0)).to(dtype)
        self.noise_std = torch.sqrt(1.0 - self.scale_factors.cumprod(dim=0)).to(dtype)
        self.timesteps = self.generate_timesteps()

    def sample_noise_schedule(self):
        p = self.params
        rates = torch.linspace(p.initial_diffusion_rate ** 0.5, p.final_diffusion_rate ** 0.5, p.num_train_timesteps)
        return 1 - rates ** 2

    def generate_timesteps(self):
        offset = self.params.timesteps_offset
        top = self.params.num_train_timesteps - 1 + offset
        space = np.linspace(offset, top, self.num_inference_steps + 1).round().astype(int)[1:]
        return torch.tensor(space).flip(0)


class DPMSolver(Solver):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.sigmas = self.generate_sigmas()

    def generate_sigmas(self):
        sigmas = self.noise_std / self.cumulative_scale_factors
        table = np.arange(0, len(sigmas))
        rescaled = torch.tensor(
            np.interp(self.timesteps.cpu(), table, sigmas.cpu()),
            device=self.device,
            dtype=self.dtype,
        )
        return torch.cat([rescaled, sigmas[0:1]])

    def add_noise(self, x, noise, step):
        scale = 1 / torch.sqrt(self.sigmas[step] ** 2 + 1)
        return scale * x + scale * self.sigmas[step] * noise


def main(x, noise):
    solver = DPMSolver(num_inference_steps=10, dtype=x.dtype)
    noisy = torch.stack([solver.add_noise(x, noise, step) for step in range(10)])
    return solver.sigmas, noisy


def inputs():
    rng = np.random.default_rng(0)
    return tuple(torch.from_numpy(rng.normal(size=(2, 8)).astype(np.float32)).bfloat16() for _ in range(2))


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
