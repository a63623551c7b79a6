"""Compresses the key-value cache of a decoder after the prompt and goes on decoding with it.

https://github.com/jagmarques/nexusquant/pull/10
"""
import torch
import torch.nn.functional as F

CONFIG = {"layers": 2, "heads": 2, "head_dim": 8, "vocab": 20, "dtype": torch.bfloat16,
          "bits": 8, "protect": 2}


class DynamicCache:
    def __init__(self, layers):
        self.key_cache, self.value_cache = [None] * layers, [None] * layers

    def update(self, layer, key, value):
        if self.key_cache[layer] is not None:
            key = torch.cat([self.key_cache[layer], key], dim=-2)
            value = torch.cat([self.value_cache[layer], value], dim=-2)
        self.key_cache[layer], self.value_cache[layer] = key, value
        return key, value


def set_layer_kv(cache, layer, key, value):
    cache.key_cache[layer] = key
    cache.value_cache[layer] = value


class LatticeQuantizer:
    def __init__(self, bits):
        self.levels = 2 ** (bits - 1) - 1

    def roundtrip(self, x):
        scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / self.levels
        return torch.round(x / scale).clamp(-self.levels, self.levels) * scale


def compress_kv_cache(cache, config):
    quantizer = LatticeQuantizer(config["bits"])
    for layer, (keys, values) in enumerate(zip(cache.key_cache, cache.value_cache)):
        k, v = keys.float().clone(), values.float().clone()
        body = slice(config["protect"], None)
        k[..., body, :] = quantizer.roundtrip(k[..., body, :])
        v[..., body, :] = quantizer.roundtrip(v[..., body, :])
        set_layer_kv(cache, layer, k.to(torch.float16), v.to(torch.float16))
    return cache


class Attention(torch.nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.heads, self.head_dim, self.layer = config["heads"], config["head_dim"], layer
        width = self.heads * self.head_dim
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.out = torch.nn.Linear(width, width, bias=False)

    def forward(self, x, cache):
        b, t, width = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        k, v = cache.update(self.layer, k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return x + self.out(y.transpose(1, 2).reshape(b, t, width))


class Decoder(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["heads"] * config["head_dim"]
        self.embed = torch.nn.Embedding(config["vocab"], width)
        self.blocks = torch.nn.ModuleList(Attention(config, i) for i in range(config["layers"]))

    def forward(self, ids, cache):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, cache)
        return x @ self.embed.weight.T


@torch.no_grad()
def main(prompt, continuation):
    torch.manual_seed(0)
    model = Decoder(CONFIG).to(CONFIG["dtype"])
    cache = DynamicCache(CONFIG["layers"])
    logits = [model(prompt, cache)[:, -1]]
    compress_kv_cache(cache, CONFIG)
    for token in continuation.T:
        logits.append(model(token[:, None], cache)[:, -1])
    return torch.stack(logits, dim=1), cache.key_cache[0]


def inputs():
    g = torch.Generator().manual_seed(2)
    return torch.randint(0, 20, (1, 9), generator=g), torch.randint(0, 20, (1, 4), generator=g)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
