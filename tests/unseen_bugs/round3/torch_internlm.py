"""One attention block of a packed language model in bfloat16, with rotary embeddings that cache
their cosines and sines for the longest sequence so far.

https://github.com/InternLM/InternLM/issues/237
"""
import torch
from torch import nn

CONFIG = {"hidden_size": 32, "num_heads": 2, "rope_base": 10000, "dtype": torch.bfloat16}


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000, scale_base=0):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        self.scale_base = scale_base
        self._seq_len_cached = 0
        self._cos_cached = None
        self._sin_cached = None

    def _update_cos_sin_cache(self, x, indexes):
        seqlen = int(indexes.max()) + 1
        if seqlen > self._seq_len_cached or self._cos_cached.dtype != x.dtype:
            self._seq_len_cached = seqlen
            t = torch.arange(seqlen, device=x.device, dtype=self.inv_freq.dtype)
            freqs = torch.outer(t, self.inv_freq.to(device=t.device))
            self._cos_cached = torch.cos(freqs).to(x.dtype)
            self._sin_cached = torch.sin(freqs).to(x.dtype)

    def forward(self, q, k, indexes):
        self._update_cos_sin_cache(q, indexes)
        cos, sin = (c[indexes][:, None] for c in (self._cos_cached, self._sin_cached))
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)

    @staticmethod
    def rotate(x, cos, sin):
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)


class MHA(nn.Module):
    def __init__(self, hidden_size, num_heads, base):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.Wqkv = nn.Linear(hidden_size, 3 * hidden_size)
        self.out_proj = nn.Linear(hidden_size, hidden_size)
        self.rotary_emb = RotaryEmbedding(self.head_dim, base)

    def forward(self, x, indexes):
        qkv = self.Wqkv(x).reshape(len(x), 3, self.num_heads, self.head_dim)
        q, k, v = qkv.unbind(dim=1)
        q, k = self.rotary_emb(q, k, indexes)
        scores = torch.einsum("qhd,khd->hqk", q, k).float() * self.head_dim ** -0.5
        mask = indexes[:, None] < indexes[None, :]
        weights = scores.masked_fill(mask, float("-inf")).softmax(dim=-1).to(v.dtype)
        context = torch.einsum("hqk,khd->qhd", weights, v).reshape(x.shape)
        return self.out_proj(context), q, k


class PackedFlashBaseLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm1 = nn.LayerNorm(config["hidden_size"])
        self.mixer = MHA(config["hidden_size"], config["num_heads"], config["rope_base"])

    def forward(self, x, indexes):
        out, q, k = self.mixer(self.norm1(x), indexes)
        return x + out, q, k


def initialize_model(config):
    torch.manual_seed(7)
    model = PackedFlashBaseLayer(config)
    return model.to(config["dtype"])


def main(hidden, indexes):
    model = initialize_model(CONFIG).eval()
    with torch.no_grad():
        out, q, k = model(hidden.to(CONFIG["dtype"]), indexes)
    return out, q, k


def inputs():
    g = torch.Generator().manual_seed(8)
    indexes = torch.tensor([0, 7, 255, 257, 515, 1027, 1531, 2047])
    return torch.randn(8, 32, generator=g), indexes


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
