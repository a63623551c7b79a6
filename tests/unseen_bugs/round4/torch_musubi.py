"""Samples a latent with a flow-matching model: a shifted schedule of noise levels, a wrapper that
passes them to the transformer as timesteps, and Euler steps.

https://github.com/kohya-ss/musubi-tuner/pull/729
"""
import math

import torch

CONFIG = {"steps": 10, "shift": 5.0, "channels": 4, "width": 16, "dtype": torch.bfloat16,
          "guidance_scale": 1.0, "t_scale": 1000.0, "seed": 0}


def get_flux_sigmas_from_mu(n, mu):
    sigmas = torch.linspace(1, 0, steps=n + 1)
    return mu * sigmas / (1 + (mu - 1) * sigmas)


def timestep_embedding(timesteps, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float32) / half)
    args = timesteps[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class Transformer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["width"]
        self.width = width
        self.x_embed = torch.nn.Linear(config["channels"], width)
        self.time_embed = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, config["channels"])
        self.conditions = []

    def forward(self, x, timestep):
        self.conditions.append(timestep_embedding(timestep, self.width))
        emb = self.time_embed(self.conditions[-1].to(x.dtype))
        return self.out(torch.tanh(self.x_embed(x) + emb[:, None]))


def fm_wrapper(transformer, t_scale, dtype):
    def k_model(x, sigma):
        dtype_in = x.dtype
        sigma = sigma.float()
        x = x.to(dtype)
        timestep = (sigma * t_scale).to(dtype)
        pred = transformer(x, timestep).float()
        sigma = sigma.view(-1, *[1] * (x.ndim - 1))
        return (x.float() - pred * sigma).to(dtype_in)

    return k_model


def to_d(x, sigma, denoised):
    return (x - denoised) / sigma


@torch.no_grad()
def sample_euler(model, noise, sigmas):
    x = noise
    for i in range(len(sigmas) - 1):
        denoised = model(x, sigmas[i].expand(x.shape[0]))
        x = x + to_d(x, sigmas[i], denoised) * (sigmas[i + 1] - sigmas[i])
    return x


def main(noise):
    torch.manual_seed(CONFIG["seed"])
    transformer = Transformer(CONFIG).to(CONFIG["dtype"])
    model = fm_wrapper(transformer, CONFIG["t_scale"], CONFIG["dtype"])
    sigmas = get_flux_sigmas_from_mu(CONFIG["steps"], CONFIG["shift"])
    latent = sample_euler(model, noise, sigmas)
    return latent, torch.cat(transformer.conditions), sigmas


def inputs():
    return (torch.randn(1, 6, CONFIG["channels"], generator=torch.Generator().manual_seed(3)),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
