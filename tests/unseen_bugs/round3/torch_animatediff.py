"""Denoises the latents of a video window by window: a motion module sees only a number of frames
at a time, so the frames are visited in overlapping contexts.

https://github.com/continue-revolution/sd-webui-animatediff/issues/168
"""
import math

import torch
from torch import nn

CONFIG = {"video_length": 12, "batch_size": 6, "overlap": 2, "stride": 1, "closed_loop": False,
          "steps": 3, "sigma_max": 4.0, "sigma_min": 0.1, "half": True}


def uniform_contexts(step, config):
    length, size = config["video_length"], config["batch_size"]
    if length <= size:
        yield list(range(length))
        return
    pad = int(round(length * (step % 2) / 2))
    stop = length + pad + (0 if config["closed_loop"] else -config["overlap"])
    for k in range(config["stride"]):
        jump = 1 << k
        for j in range(pad, stop, size * jump - config["overlap"]):
            yield [e % length for e in range(j, j + size * jump, jump)]


class TemporalAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.to_qkv = nn.Linear(channels, 3 * channels)
        self.to_out = nn.Linear(channels, channels)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        weights = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]), dim=-1)
        return x + self.to_out(torch.matmul(weights, v))


class UNet(nn.Module):
    def __init__(self, channels=4, hidden=8):
        super().__init__()
        self.inp = nn.Linear(channels + 1, hidden)
        self.motion = TemporalAttention(hidden)
        self.out = nn.Linear(hidden, channels)
        self.dtype = torch.float32

    def half(self):
        self.dtype = torch.float16
        return super().half()

    def forward(self, x, sigma):
        x = x.to(self.dtype)
        t = sigma.log().to(self.dtype)[:, None, None].expand(*x.shape[:2], 1)
        h = self.inp(torch.cat([x, t], dim=-1)).transpose(0, 1)
        return self.out(torch.tanh(self.motion(h))).transpose(0, 1)


class CFGDenoiser:
    def __init__(self, unet, config):
        self.unet, self.config = unet, config
        self.step = 0

    def mm_cfg_forward(self, x, sigma):
        x_out = torch.zeros_like(x)
        for context in uniform_contexts(self.step, self.config):
            out = self.unet(x[context], sigma[context])
            x_out[context] = out
        self.step += 1
        return x_out


def sample_euler(denoiser, x, sigmas):
    for sigma, following in zip(sigmas[:-1], sigmas[1:]):
        eps = denoiser.mm_cfg_forward(x, sigma.expand(len(x)))
        x = x + eps * (following - sigma)
    return x


def main(latents):
    torch.manual_seed(11)
    unet = UNet(latents.shape[-1]).eval()
    if CONFIG["half"]:
        unet = unet.half()
    ends = math.log(CONFIG["sigma_max"]), math.log(CONFIG["sigma_min"])
    sigmas = torch.linspace(*ends, CONFIG["steps"] + 1).exp()
    with torch.no_grad():
        return (sample_euler(CFGDenoiser(unet, CONFIG), latents * sigmas[0], sigmas),)


def inputs():
    g = torch.Generator().manual_seed(12)
    return (torch.randn(CONFIG["video_length"], 9, 4, generator=g),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
