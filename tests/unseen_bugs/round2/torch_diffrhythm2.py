"""Samples blocks of a song's latents with a flow-matching transformer, in half precision, with
Euler steps over the time.

https://github.com/xiaomi-research/diffrhythm2/issues/5
"""
import math

import torch
from torch import nn

CONFIG = {"dim": 16, "latent": 8, "depth": 2, "heads": 2, "block": 4, "steps": 3}


class SinusPositionEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, scale=1000):
        half_dim = self.dim // 2
        emb = math.log(10000) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=x.device).float() * -emb)
        emb = scale * x.unsqueeze(1) * emb.unsqueeze(0)
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class TimestepEmbedding(nn.Module):
    def __init__(self, dim, freq_embed_dim=32):
        super().__init__()
        self.time_embed = SinusPositionEmbedding(freq_embed_dim)
        self.time_mlp = nn.Sequential(nn.Linear(freq_embed_dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, timestep):
        time_hidden = self.time_embed(timestep)
        time_hidden = time_hidden.to(timestep.dtype)
        return self.time_mlp(time_hidden)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.modulation = nn.Linear(dim, 2 * dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)

    def forward(self, x, t):
        shift, scale = self.modulation(t).unsqueeze(1).chunk(2, dim=-1)
        h = self.norm(x) * (1 + scale) + shift
        return x + self.attn(h, h, h, need_weights=False)[0]


class DiT(nn.Module):
    def __init__(self, dim, latent, depth, heads, **kwargs):
        super().__init__()
        self.time_embed = TimestepEmbedding(dim)
        self.input_embed = nn.Linear(2 * latent, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.proj_out = nn.Linear(dim, latent)

    def forward(self, x, cond, time):
        if time.ndim == 0:
            time = time.repeat(x.shape[0])
        t = self.time_embed(time)
        x = self.input_embed(torch.cat((x, cond), dim=-1))
        for block in self.blocks:
            x = block(x, t)
        return self.proj_out(x)


class CFM(nn.Module):
    def __init__(self, transformer):
        super().__init__()
        self.transformer = transformer

    @torch.no_grad()
    def sample_block_cache(self, noise, steps, block):
        cond, latents = torch.zeros_like(noise[:, :block]), []
        times = torch.linspace(0, 1, steps + 1, device=noise.device)
        for start in range(0, noise.shape[1], block):
            x = noise[:, start:start + block]
            for t, t_next in zip(times[:-1], times[1:]):
                x = x + (t_next - t) * self.transformer(x, cond, t)
            cond = x
            latents.append(x)
        return torch.cat(latents, dim=1)


def main(noise):
    torch.manual_seed(0)
    model = CFM(DiT(**CONFIG)).half().eval()
    return model.sample_block_cache(noise.half(), CONFIG["steps"], CONFIG["block"])


def inputs():
    return (torch.randn(1, 8, 8, generator=torch.Generator().manual_seed(1)),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
