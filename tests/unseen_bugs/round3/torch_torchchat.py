"""Generates with a small transformer in bfloat16 whose linear layers are replaced by int8 ones
with dynamic activations, and a cache of keys and values.

https://github.com/pytorch/torchchat/issues/596
"""
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {"dim": 16, "n_heads": 2, "n_layers": 2, "vocab": 20, "max_seq_length": 12,
          "dtype": torch.bfloat16, "quantize": {"groupsize": 8}}


class KVCache(nn.Module):
    def __init__(self, max_seq_length, n_heads, head_dim, dtype):
        super().__init__()
        shape = (1, n_heads, max_seq_length, head_dim)
        self.register_buffer("k_cache", torch.zeros(shape, dtype=dtype))
        self.register_buffer("v_cache", torch.zeros(shape, dtype=dtype))

    def update(self, input_pos, k_val, v_val):
        self.k_cache[:, :, input_pos] = k_val
        self.v_cache[:, :, input_pos] = v_val
        return self.k_cache, self.v_cache


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        dim, self.n_heads = config["dim"], config["n_heads"]
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.kv_cache = None

    def forward(self, x, input_pos):
        n, dim = x.shape
        q, k, v = (w(x).view(1, n, self.n_heads, -1).transpose(1, 2)
                   for w in (self.wq, self.wk, self.wv))
        k, v = self.kv_cache.update(input_pos, k, v)
        mask = torch.arange(k.shape[2])[None, :] <= input_pos[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).reshape(n, dim))


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tok_embeddings = nn.Embedding(config["vocab"], config["dim"])
        self.layers = nn.ModuleList(Attention(config) for _ in range(config["n_layers"]))
        self.output = nn.Linear(config["dim"], config["vocab"], bias=False)

    def setup_caches(self):
        c = self.config
        for layer in self.layers:
            layer.kv_cache = KVCache(c["max_seq_length"], c["n_heads"], c["dim"] // c["n_heads"],
                                     self.tok_embeddings.weight.dtype)

    def forward(self, idx, input_pos):
        x = self.tok_embeddings(idx)
        for layer in self.layers:
            x = x + layer(x, input_pos)
        return self.output(x).float()


class Int8DynActInt8WeightLinear(nn.Module):
    def __init__(self, weight, groupsize, precision):
        super().__init__()
        self.groupsize, self.precision = groupsize, precision
        w = weight.detach().float().reshape(len(weight), -1, groupsize)
        scales = w.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / 127
        self.register_buffer("weight", torch.round(w / scales).to(torch.int8))
        self.register_buffer("scales", scales)

    def forward(self, x):
        x = x.to(self.precision)
        scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / 127
        x = torch.clamp(torch.round(x / scale), -128, 127) * scale
        weight = (self.weight * self.scales).flatten(1).to(self.precision)
        return F.linear(x, weight)


class Int8DynActQuantHandler:
    def __init__(self, groupsize, precision=torch.float32):
        self.groupsize, self.precision = groupsize, precision

    def quantize(self, module):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                new = Int8DynActInt8WeightLinear(child.weight, self.groupsize, self.precision)
                setattr(module, name, new)
            else:
                self.quantize(child)
        return module


def main(prompt):
    torch.manual_seed(21)
    model = Transformer(CONFIG).to(CONFIG["dtype"]).eval()
    model = Int8DynActQuantHandler(**CONFIG["quantize"]).quantize(model)
    model.setup_caches()
    with torch.no_grad():
        prefill = model(prompt, torch.arange(len(prompt)))
        last = prefill[-1:].argmax(dim=-1)
        return prefill, model(last, torch.tensor([len(prompt)]))


def inputs():
    return (torch.tensor([3, 17, 4, 9, 12]),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
