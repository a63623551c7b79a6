"""Sampling from a language model in torch: weights and the cache in bfloat16, norms and rotary
angles in float32, and the logits in float32 for the choice of a token."""
import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {"vocab": 29, "width": 16, "heads": 2, "layers": 2, "max_len": 16}


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


def rotary(positions, dim, base=10000.0):
    inverse = base ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angles = positions.to(torch.float32)[:, None] * inverse
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, positions, cache):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        cos, sin = rotary(positions, q.shape[-1])
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        cache["k"][:, :, positions], cache["v"][:, :, positions] = k, v
        end = int(positions[-1]) + 1
        mask = torch.arange(end)[None] <= positions[:, None]
        y = F.scaled_dot_product_attention(q, cache["k"][:, :, :end], cache["v"][:, :, :end], attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(c["vocab"], c["width"])
        nn.init.normal_(self.embed.weight, std=0.4)
        self.blocks = nn.ModuleList(Block(c["width"], c["heads"]) for _ in range(c["layers"]))
        self.norm = RMSNorm(c["width"])
        self.config = c

    def new_cache(self, batch):
        c, dtype = self.config, self.embed.weight.dtype
        shape = (batch, c["heads"], c["max_len"], c["width"] // c["heads"])
        return [{n: torch.zeros(shape, dtype=dtype) for n in "kv"} for _ in self.blocks]

    def forward(self, ids, positions, caches):
        x = self.embed(ids)
        for block, cache in zip(self.blocks, caches):
            x = block(x, positions, cache)
        return F.linear(self.norm(x[:, -1]), self.embed.weight).float()


def choose(logits, temperature, top_p, generator):
    probs, order = torch.softmax(logits / temperature, dim=-1).sort(dim=-1, descending=True)
    probs[probs.cumsum(dim=-1) - probs > top_p] = 0
    pick = torch.multinomial(probs, 1, generator=generator)
    return order.gather(-1, pick), probs.gather(-1, pick).log()


@torch.no_grad()
def main(prompt):
    torch.manual_seed(0)
    model = Model(CONFIG).to(torch.bfloat16).eval()
    generator = torch.Generator().manual_seed(1)
    caches, ids, scores = model.new_cache(len(prompt)), prompt, []
    positions, step = torch.arange(prompt.shape[1]), prompt
    for _ in range(6):
        logits = model(step, positions, caches)
        step, score = choose(logits, 0.8, 0.9, generator)
        ids, positions = torch.cat([ids, step], dim=1), positions[-1:] + 1
        scores.append(score)
    return ids, torch.cat(scores, dim=1), logits


def inputs():
    return (torch.tensor([[3, 17, 8, 21], [5, 5, 28, 0]]),)
