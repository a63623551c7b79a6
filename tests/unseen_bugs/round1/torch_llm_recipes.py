"""Builds a small decoder with rotary position embedding, puts it in the precision of the
run, and returns its hidden states together with the cosines it rotates by.

https://github.com/okoge-kaz/llm-recipes/pull/6
"""
import torch
from torch import nn

ARGS = {"bf16": True, "fp16": False, "hidden_size": 64, "num_heads": 1, "rope_theta": 10000.0}


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        inv_freq_expanded = self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1)
        position_ids_expanded = position_ids[:, None, :].float()
        freqs = (inv_freq_expanded @ position_ids_expanded).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(q, k, cos, sin):
    cos, sin = cos.to(q.dtype), sin.to(q.dtype)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        size = args["hidden_size"]
        self.norm = nn.LayerNorm(size)
        self.q_proj = nn.Linear(size, size, bias=False)
        self.k_proj = nn.Linear(size, size, bias=False)
        self.v_proj = nn.Linear(size, size, bias=False)
        self.rotary_emb = RotaryEmbedding(size // args["num_heads"], args["rope_theta"])

    def forward(self, h, position_ids):
        x = self.norm(h)
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        cos, sin = self.rotary_emb(v, position_ids)
        q, k = apply_rotary(q, k, cos, sin)
        return h + nn.functional.scaled_dot_product_attention(q, k, v), cos


def get_model(args):
    torch.manual_seed(0)
    model = Attention(args)
    for p in model.parameters():
        p.requires_grad_(False)
    return model


def main(hidden_states, position_ids):
    args = ARGS
    model = get_model(args)
    if args["bf16"]:
        model.to(torch.bfloat16)
    elif args["fp16"]:
        model.to(torch.float16)
    return model(hidden_states, position_ids)


def inputs():
    g = torch.Generator().manual_seed(1)
    h = torch.randn(1, 6, 64, generator=g).to(torch.bfloat16)
    return h, torch.tensor([[0, 1, 500, 1000, 2000, 4000]])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
