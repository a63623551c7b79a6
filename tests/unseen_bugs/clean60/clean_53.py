"""Warm-up plus cosine learning-rate schedule evaluated for a batch of steps."""
import math

import torch

PEAK, FLOOR = 3e-4, 3e-5
WARMUP, TOTAL = 100, 1000


def schedule(step):
    s = step.to(torch.float32)
    warm = PEAK * s / WARMUP
    progress = ((s - WARMUP) / (TOTAL - WARMUP)).clamp(0.0, 1.0)
    cosine = FLOOR + 0.5 * (PEAK - FLOOR) * (1.0 + torch.cos(math.pi * progress))
    return torch.where(step < WARMUP, warm, cosine)


def noise_tables(timesteps, s=0.008):
    """Cosine diffusion schedule: worked out in double, the tables stored in single."""
    t = torch.linspace(0, 1, timesteps + 1, dtype=torch.float64)
    alpha_bar = torch.cos((t + s) / (1 + s) * math.pi / 2) ** 2
    alpha_bar = alpha_bar / alpha_bar[0]
    betas = 1 - alpha_bar[1:] / alpha_bar[:-1]
    alpha_bar = torch.cumprod(1 - betas.clamp(max=0.999), dim=0)
    signal, sigma = alpha_bar.sqrt(), (1 - alpha_bar).sqrt()
    return signal.to(torch.float32), sigma.to(torch.float32)


def main(steps, x0, noise, t_index):
    lr = schedule(steps)
    signal, sigma = noise_tables(50)
    noisy = signal[t_index].unsqueeze(-1) * x0 + sigma[t_index].unsqueeze(-1) * noise
    return lr, noisy


def inputs():
    g = torch.Generator().manual_seed(15)
    return (torch.arange(0, 1200, 50), torch.randn(4, 6, generator=g),
            torch.randn(4, 6, generator=g), torch.tensor([0, 10, 30, 49]))
