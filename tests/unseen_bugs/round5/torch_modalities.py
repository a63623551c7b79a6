"""Rotary transform of queries and keys in a decoder whose parameters are bfloat16 and whose buffers are not.

https://github.com/Modalities/modalities/pull/462
"""
import numpy as np
import torch
import torch.nn as nn


class RotaryTransform(nn.Module):
    def __init__(self, n_embd, n_head, seq_length_dim=-2, base_freq=10000):
        super().__init__()
        self.dim_model = n_embd // n_head
        self.seq_length_dim = seq_length_dim
        inv_freq = 1.0 / (base_freq ** (torch.arange(0, self.dim_model, 2).float() / self.dim_model))
        self.register_buffer("inv_freq", inv_freq)
        self._seq_len_cached = None
        self._cos_cached = None
        self._sin_cached = None

    def rotate_half(self, x):
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((-x2, x1), dim=-1)

    def _update_cos_sin_tables(self, x):
        seq_len = x.shape[self.seq_length_dim]
        if seq_len != self._seq_len_cached or self._cos_cached.dtype != x.dtype:
            self._seq_len_cached = seq_len
            t = torch.arange(seq_len, device=x.device, dtype=torch.float32)
            freqs = torch.outer(t, self.inv_freq.to(x.dtype))
            emb = torch.cat((freqs, freqs), dim=-1).to(x.device)
            self._cos_cached = emb.cos()[None, None, :, :].to(x.dtype)
            self._sin_cached = emb.sin()[None, None, :, :].to(x.dtype)
        return self._cos_cached, self._sin_cached

    def forward(self, q, k):
        cos, sin = self._update_cos_sin_tables(k)
        return tuple(v * cos + self.rotate_half(v) * sin for v in (q, k))


class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.q_attn = nn.Linear(n_embd, n_embd, bias=False)
        self.k_attn = nn.Linear(n_embd, n_embd, bias=False)
        self.qkv_transform = RotaryTransform(n_embd, n_head)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.n_head, -1).transpose(1, 2)

    def forward(self, x):
        return self.qkv_transform(self.split(self.q_attn(x)), self.split(self.k_attn(x)))


def mixed_precision(module, param_dtype):
    for p in module.parameters():
        p.data = p.data.to(param_dtype)
    return module


def main(x):
    torch.manual_seed(0)
    attention = mixed_precision(Attention(x.shape[-1], 2), torch.bfloat16)
    with torch.no_grad():
        q, _ = attention(x.to(torch.bfloat16))
    cos, sin = attention.qkv_transform._update_cos_sin_tables(q)
    return q, cos[0, 0], sin[0, 0]


def inputs():
    rng = np.random.default_rng(0)
    return (torch.from_numpy(rng.normal(size=(1, 1200, 32)).astype(np.float32)),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
