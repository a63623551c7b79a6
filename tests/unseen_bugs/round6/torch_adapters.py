"""Adds low-rank adapters to the projections of a frozen language model and trains them for a
few steps.

https://github.com/adapter-hub/adapters/issues/766
"""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class LoRAConfig:
    r: int = 4
    alpha: int = 8
    attn_matrices: tuple = ("q", "v")
    init_weights: str = "lora"


class LoRA(nn.Module):
    def __init__(self, lora_A_shape, lora_B_shape, config):
        super().__init__()
        self.scaling = config.alpha / config.r
        self.lora_A = nn.Parameter(torch.zeros(lora_A_shape))
        self.lora_B = nn.Parameter(torch.zeros(lora_B_shape))
        if config.init_weights == "lora":
            nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, layer_input):
        return layer_input @ torch.t(self.lora_A) @ torch.t(self.lora_B) * self.scaling


class LoRALinear(nn.Linear):
    def __init__(self, in_features, out_features, location, **kwargs):
        super().__init__(in_features, out_features, **kwargs)
        self.location = location
        self.loras = nn.ModuleDict()
        self.active = None

    def add_adapter(self, name, config):
        if self.location not in config.attn_matrices:
            return False
        self.loras[name] = LoRA((config.r, self.in_features), (self.out_features, config.r), config)
        return True

    def forward(self, x):
        result = F.linear(x, self.weight, self.bias)
        if self.active in self.loras:
            result = result + self.loras[self.active](x)
        return result


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v = (LoRALinear(width, width, n, bias=False) for n in "qkv")

    def forward(self, x):
        h = self.norm(x)
        return x + F.scaled_dot_product_attention(self.q(h), self.k(h), self.v(h), is_causal=True)


class CausalLM(nn.Module):
    def __init__(self, vocab=19, width=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.lm_head = nn.Linear(width, vocab, bias=False)

    @classmethod
    def from_pretrained(cls, seed, torch_dtype):
        torch.manual_seed(seed)
        return cls().to(torch_dtype)

    def add_adapter(self, name, config):
        for module in self.modules():
            if isinstance(module, LoRALinear):
                module.add_adapter(name, config)

    def train_adapter(self, name):
        self.requires_grad_(False)
        for module in self.modules():
            if isinstance(module, LoRALinear):
                module.active = name
                module.loras.requires_grad_(True)
        return [p for p in self.parameters() if p.requires_grad]

    def forward(self, input_ids):
        logits = self.lm_head(self.blocks(self.embed(input_ids)))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), input_ids[:, 1:].flatten())


def main(input_ids):
    model = CausalLM.from_pretrained(3, torch_dtype=torch.bfloat16)
    model.add_adapter("boolq", LoRAConfig())
    optimizer = torch.optim.SGD(model.train_adapter("boolq"), lr=2.0)
    losses = []
    for _ in range(6):
        loss = model(input_ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def inputs():
    g = torch.Generator().manual_seed(0)
    return (torch.randint(0, 19, (3, 9), generator=g),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
