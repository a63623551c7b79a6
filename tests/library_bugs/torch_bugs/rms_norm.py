"""Hidden states of bfloat16 become float32: the weight of RMSNorm is float32.

https://github.com/huggingface/transformers/issues/30236
"""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))  # born
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)  # guilty


class DecoderLayer(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.input_layernorm = RMSNorm(hidden_size)
        self.activation = nn.SiLU()

    def forward(self, hidden_states):
        return hidden_states + self.activation(self.input_layernorm(hidden_states))


def program(hidden_states):
    torch.manual_seed(0)
    return DecoderLayer(hidden_states.shape[-1])(hidden_states)


def inputs():
    return (torch.ones(2, 4, 8, dtype=torch.bfloat16),)


def shows_fault(result):
    return result.dtype == torch.float32
