"""Top-p filtering of the logits of a language model before a token is drawn.

https://github.com/NVIDIA/Megatron-LM/pull/7182
"""
from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class SamplingParams:
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 0.95


def modify_logits_for_top_k_filtering(logits, top_k):
    filter_ = logits < torch.topk(logits, top_k)[0][..., -1, None]
    logits.masked_fill_(filter_, float("-Inf"))


def modify_logits_for_top_p_filtering(logits, top_p):
    sorted_logits, sorted_indices = torch.sort(logits, descending=True)
    cumulative_probs = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
    filter_ = cumulative_probs > top_p
    filter_[:, 1:] = filter_[:, :-1].clone()
    filter_[..., 0] = 0
    filter_ = filter_.scatter(1, sorted_indices, filter_)
    logits.masked_fill_(filter_, float("-Inf"))


class TorchSampling:
    def __init__(self, params, vocab_size, seed=0):
        self.params, self.vocab_size = params, vocab_size
        self.rng = torch.Generator().manual_seed(seed)

    def filter(self, last_token_logits):
        logits = last_token_logits.clone()
        if self.params.temperature != 1.0:
            logits.div_(self.params.temperature)
        if self.params.top_k > 0:
            modify_logits_for_top_k_filtering(logits, self.params.top_k)
        if self.params.top_p > 0.0:
            modify_logits_for_top_p_filtering(logits, self.params.top_p)
        return logits

    def sample(self, last_token_logits):
        logits = self.filter(last_token_logits)
        probabilities = logits.float().softmax(dim=-1)
        tokens = torch.multinomial(probabilities, 1, generator=self.rng).view(-1)
        return torch.isfinite(logits), torch.clamp(tokens, min=0, max=self.vocab_size - 1)


def main(logits):
    kept, tokens = TorchSampling(SamplingParams(), logits.shape[-1]).sample(logits)
    return kept.sum(dim=-1), tokens.shape[0] * torch.ones(1)


def inputs():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 8000)) * 0.8
    return (torch.from_numpy(logits.astype(np.float32)).bfloat16(),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)
