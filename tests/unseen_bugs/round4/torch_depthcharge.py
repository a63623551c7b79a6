"""Encodes peptide sequences: tokens, sinusoidal positions and a feed-forward block.

https://github.com/wfondrie/depthcharge/pull/82
"""
import math

import torch

CONFIG = {"n_tokens": 25, "d_model": 16, "hidden": 32, "precision": torch.bfloat16, "seed": 0,
          "min_wavelength": 1.0, "max_wavelength": 1e5}


class FloatEncoder(torch.nn.Module):
    def __init__(self, d_model, min_wavelength=0.001, max_wavelength=10000):
        super().__init__()
        d_sin = math.ceil(d_model / 2)
        d_cos = d_model - d_sin
        base = min_wavelength / (2 * math.pi)
        scale = max_wavelength / min_wavelength
        sin_exp = torch.arange(0, d_sin).float() / (d_sin - 1)
        cos_exp = (torch.arange(d_sin, d_model).float() - d_sin) / (d_cos - 1)
        self.register_buffer("sin_term", base * (scale ** sin_exp))
        self.register_buffer("cos_term", base * (scale ** cos_exp))

    def forward(self, X):
        sin_mz = torch.sin(X[:, :, None] / self.sin_term)
        cos_mz = torch.cos(X[:, :, None] / self.cos_term)
        return torch.cat([sin_mz, cos_mz], dim=-1)


class PositionalEncoder(FloatEncoder):
    def forward(self, X):
        pos = torch.arange(X.shape[1]).type_as(self.sin_term)
        encoded = super().forward(pos.expand(X.shape[0], -1))
        return encoded.to(X.dtype) + X


class FeedForward(torch.nn.Module):
    def __init__(self, d_model, hidden):
        super().__init__()
        self.norm = torch.nn.LayerNorm(d_model)
        self.up = torch.nn.Linear(d_model, hidden)
        self.down = torch.nn.Linear(hidden, d_model)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class AnalyteEncoder(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        d_model = config["d_model"]
        self.token_encoder = torch.nn.Embedding(config["n_tokens"], d_model)
        self.positional_encoder = PositionalEncoder(
            d_model, config["min_wavelength"], config["max_wavelength"])
        self.feedforward = FeedForward(d_model, config["hidden"])

    def embed(self, tokens):
        return self.positional_encoder(self.token_encoder(tokens))

    def forward(self, tokens):
        encoded = self.embed(tokens)
        return encoded, self.feedforward(encoded).mean(dim=1)


def build(config):
    torch.manual_seed(config["seed"])
    return AnalyteEncoder(config).to(config["precision"])


@torch.no_grad()
def main(tokens):
    encoded, pooled = build(CONFIG)(tokens)
    return encoded, pooled


def inputs():
    return (torch.randint(1, 25, (2, 300), generator=torch.Generator().manual_seed(4)),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
